"""Arrays: what knows no words: blocks, rows, sparse products, random keys."""
