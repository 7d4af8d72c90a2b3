"""Generated sentences as arrays: what the examples train on."""

import numpy as np

from zoo.data import Micro, with_priors
from zoo.lexicon import Lexicon
from zoo.priors import Affixes, TopWords

# A small language with gender and number agreement, whose words end as they inflect.
SOURCE = Micro(nouns=24, adjectives=8, verbs=8, places=4, quantities=4, years=4)
TRAIN, VALIDATION = 1024, 128


def sentences(split: str, count: int) -> list[list[str]]:
    """The first sentences of a split."""
    return SOURCE.read(split).sentences[:count]


def lexicon() -> Lexicon:
    """The words of the training text, known by their identities and endings."""
    rows = [{"text": sentence} for sentence in sentences("train", TRAIN)]
    words = Lexicon.from_dataset(rows, "text")
    return with_priors(words, (TopWords(200), Affixes()))


def batch(words: Lexicon, texts: list[list[str]], length: int = 16) -> tuple[np.ndarray, ...]:
    """(inputs int32 [B, T], targets int32 [B, T], weights float32 [B, T]) of sentences.

    A sentence begins and ends with the boundary; longer ones are cut, padding has the weight 0.
    """
    ids = np.full((len(texts), length + 1), words.boundary_id, np.int32)
    weights = np.zeros((len(texts), length), np.float32)
    for row, sentence in enumerate(texts):
        encoded = words.encode([*sentence, words.boundary])[:length]
        ids[row, 1 : 1 + len(encoded)] = encoded
        weights[row, : len(encoded)] = 1
    return ids[:, :-1], ids[:, 1:], weights


def batches(words: Lexicon, steps: int, size: int = 32):
    """One batch a step, in turn."""
    inputs, targets, weights = batch(words, sentences("train", TRAIN))
    for step in range(steps):
        rows = np.arange(step * size, (step + 1) * size) % len(inputs)
        yield inputs[rows], targets[rows], weights[rows]
