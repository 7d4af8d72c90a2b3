"""News, little of it: what heads know of rare numbers and names."""
