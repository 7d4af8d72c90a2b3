"""Trust: what a saved recipe may name, and what it may not make a program do."""
