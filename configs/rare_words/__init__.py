"""A small news corpus: how heads predict rare numbers and names."""
