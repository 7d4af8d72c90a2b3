"""Batches of words with spellings, for models that read or spell words letter by letter."""

import numpy as np

from zoo.data import Text, Vocabulary
from zoo.lexicon import Lexicon
from zoo.sources import files

BATCH = 32


def batch_of_words(random, length):
    """Returns (lexicon, words [B, T], description) of a batch of the Penn Treebank if it is there,
    else of Zipf's law.

    Args:
      random: a generator of numpy.
      length: T.
    """
    data = files.data_folder()
    has_treebank = data is not None and (data / "ptb" / "ptb.train.txt").exists()
    return treebank(length) if has_treebank else zipf(random, length)


def treebank(length):
    """Returns (lexicon, words [B, T], description) for a batch of the Penn Treebank."""
    source = Text(train="ptb/ptb.train.txt", validation="ptb/ptb.valid.txt")
    vocabulary = Vocabulary()
    lexicon, corpora = vocabulary.build(source)
    words = vocabulary.encode(corpora["train"], lexicon).words
    batch_rows = words[: len(words) // BATCH * BATCH].reshape(BATCH, -1)
    return lexicon, batch_rows[:, 1000 : 1000 + length], "of the Penn Treebank"


def zipf(random, length, size=10_000):
    """Returns the same for generated words of 1 to 18 letters, frequent words being short."""
    lengths = np.minimum(1 + np.log2(1 + np.arange(size)) / 2 + random.poisson(1, size), 18)
    words = {}
    for place, letters in enumerate(lengths.astype(int)):
        while len(words) <= place:
            words["".join(map(chr, random.integers(97, 123, letters)))] = None
    mass = 1 / np.arange(1, size + 1)
    batch = random.choice(size, (BATCH, length), p=mass / mass.sum())
    return Lexicon(tuple(words), np.ones(size, np.int64)), batch, "of Zipf's law"
