"""Czech in the letter model of two_languages_char, without the other language.

    python train.py --config czech_char runs/czech_char

The control of two_languages_char: the same model, as many sentences of this language an epoch, and
none of the other language. Expected: 11.19 nats a word on the test, at most 9 minutes on one CPU
core.
"""

from configs import czech_we_3
from configs.characters._shared import letter_model
from zoo import Experiment
from zoo.data import Mixed


def get_config() -> Experiment:
    corpora = (czech_we_3.get_config().data,)
    return letter_model(Mixed(names=("czech",), corpora=corpora, sentences=10_000))
