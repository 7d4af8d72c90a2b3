"""Czech in a model of letters, as two_languages_char has it, without the other language.

    python train.py --config czech_char runs/czech_char
    python evaluate.py runs/czech_char

The control of two_languages_char: the same model and as many sentences of this language an epoch,
none of the other's. Expected: 11.24 nats a word on the test, at most 9 minutes on one CPU
core. Results: docs/results.md.
"""

from configs import czech_we_3
from configs.characters._shared import of_letters
from zoo import Experiment
from zoo.data import Mixed


def get_config() -> Experiment:
    """The experiment."""
    corpora = (czech_we_3.get_config().data,)
    return of_letters(Mixed(names=("czech",), corpora=corpora, sentences=10_000))
