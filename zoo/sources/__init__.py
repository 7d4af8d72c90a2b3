"""Sources: files read, and corpora made of them."""
