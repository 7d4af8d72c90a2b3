"""The log-linear head over rich features against a softmax over the words.

One step forward and backward, gradients of the head's parameters and the hidden states. Words are
random strings of 2 to 14 letters with French letter frequencies. Their features are letter
trigrams, so that nearly every word has its own signature; or word identities and affixes; or word
identities and three of 600 shared features.

    python -m benchmarks.log_linear_letters
"""

import numpy as np

from benchmarks import steps, timing
from zoo import lexicon as lexicons
from zoo import priors
from zoo.heads import LogLinear, Softmax
from zoo.lab.commands import program

SIZE = 256
LETTERS = "esaitnrulodcmpévqfbghjxyz"
FREQUENCIES = [15, 8, 8, 7, 7, 7, 6.5, 6, 5.5, 5.5, 4, 3.5, 3, 3, 2, 1.5, 1.3, 1, 1, 1, 0.8]
FREQUENCIES += [0.6, 0.4, 0.3, 0.1]


def spelled_lexicon(
    random: np.random.Generator, size: int, kind: str = "letter trigrams"
) -> lexicons.Lexicon:
    """Makes a lexicon of distinct strings of letters, with features of a kind and Zipf counts."""
    share = np.array(FREQUENCIES) / sum(FREQUENCIES)
    words = {}
    while len(words) < size:
        letters = random.choice(list(LETTERS), size=random.integers(2, 15), p=share)
        words["".join(letters)] = None
    counts = (1e6 / np.arange(1, size + 1)).astype(np.int64) + 1
    words = tuple(words)
    if kind == "letter trigrams":
        features = priors.LetterNgrams(sizes=(3,), minimum_words=5).features(words, {}, {})
    elif kind == "identities, affixes":
        affixes = priors.Affixes().features(words, {}, {})
        features = [{f"Word:{w}": 1.0, **affix} for w, affix in zip(words, affixes, strict=True)]
    else:
        topics = random.integers(600, size=(size, 3))
        features = [
            {f"Word:{w}": 1.0, **{f"Topic:{topic}": 1.0 for topic in word_topics}}
            for w, word_topics in zip(words, topics, strict=True)
        ]
    return lexicons.with_features(
        lexicons.Lexicon(words=words, counts=counts),
        features,
        np.log(counts / counts.sum()),
    )


def compare(kind: str, size: int, tokens: int, rounds: int):
    """Prints a table for a kind of features, a vocabulary and a batch."""
    lexicon = spelled_lexicon(np.random.default_rng(0), size, kind)
    inputs = steps.random_tokens(SIZE, tokens, lexicon)
    sides = {
        name: steps.head_step(head, lexicon, *inputs)
        for name, head in ((kind, LogLinear()), ("softmax", Softmax()))
    }
    title = (
        f"N = {tokens:,}, D = {SIZE}, V = {size:,}, S = {len(lexicon.signatures[1]):,}, "
        f"F = {len(lexicon.feature_names):,}, "
        f"{len(lexicon.feature_ids) / size:.1f} features a word"
    )
    timing.compare(title, sides, rounds, "softmax")


def main():
    """Prints the tables."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds
    program.keep_memory()  # as in training
    for size, tokens in ((10_000, 256), (40_000, 256), (40_000, 1120), (200_000, 256)):
        compare("letter trigrams", size, tokens, rounds)
    for kind in ("identities, affixes", "identities, 600 shared"):
        for tokens in (256, 700):
            compare(kind, 10_000, tokens, rounds)


if __name__ == "__main__":
    main()
