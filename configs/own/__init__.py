"""One's own text or pairs: recipes that need nothing but paths."""
