"""Shared parts of the n-gram models whose words have letters: Labeau and Allauzen (2017)."""

from zoo.embeddings import CharCNN, Concat, Lookup
from zoo.heads import NCE, CNNSoftmax
from zoo.optimizers import Adagrad

WORDS_AND_LETTERS = Concat((Lookup(size=128), CharCNN(size=128)))


def letters_out(noise) -> dict:
    """Returns the changes of czech_we_3 by which letters are read and predicted ("CWE-CWE")."""
    return {
        "model.embedding": WORDS_AND_LETTERS,
        "model.core.dropout": 0.0,
        "model.core.input_dropout": 0.0,
        "model.head": CNNSoftmax(sampled=NCE(noise=noise, samples=25, noise_per="token")),
        "training.optimizer": Adagrad(learning_rate=0.1, reset_every=5),
    }
