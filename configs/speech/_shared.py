"""The input of the models with letters: a vector a word, and one from its letters."""

from zoo.embeddings import CharCNN, Concat, Lookup

WORDS_AND_LETTERS = Concat((Lookup(size=136), CharCNN(size=64)))
