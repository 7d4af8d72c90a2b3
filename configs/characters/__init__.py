"""Characters as words, and words as characters."""
