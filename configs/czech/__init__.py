"""Czech newspapers, n-gram models, words from their letters: Labeau and Allauzen (2017)."""
