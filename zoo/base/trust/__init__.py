"""Trust: which code and files a saved recipe may make a program import, run and read."""
