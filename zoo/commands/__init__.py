"""Commands: what a command line does."""
