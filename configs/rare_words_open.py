"""News over infinitely many words: all numbers, and all strings of letters.

    python train.py --config rare_words_open --workdir runs/rare_words_open
    python evaluate.py --workdir runs/rare_words_open
    python -m zoo generate --workdir runs/rare_words_open --features

As rare_words_log_linear, but the lexicon has only the words that occur twice in the training text.
Other strings of digits are words of a class whose background falls geometrically with their length,
other words of two classes with a letter model each, those with a capital and the rest: log-linear
models over an infinite domain (Dymetman and Xiao 2016, section 4). Few strings are left to <unk>.
Data: lm1b/ in $ZOO_DATA. Results: docs/log_linear.md.
"""

import dataclasses

from configs import rare_words_log_linear
from zoo import Experiment, priors

RARE = "Word:@not_top"


def get_config() -> Experiment:
    """The experiment."""
    base = rare_words_log_linear.get_config()
    classes = (
        priors.DigitStrings(("Number:any", "Number:digits", RARE), name="<digits>", share=0.01),
        priors.LetterStrings(
            ("Shape:Capital", RARE),
            name="<Name>",
            share=0.04,
            order=5,
            smoothing=0.8,
            first="capital",
        ),
        priors.LetterStrings(
            (RARE,), name="<word>", share=0.04, order=5, smoothing=0.8, first="other"
        ),
    )
    vocabulary = dataclasses.replace(base.vocabulary, splits=("train",), open_classes=classes)
    return dataclasses.replace(base, vocabulary=vocabulary)
