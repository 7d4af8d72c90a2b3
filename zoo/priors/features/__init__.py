"""Features of words: sets of feature names that a log-linear head and embeddings read."""
