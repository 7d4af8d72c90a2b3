"""French in the letter model of two_languages_char, without the other language.

    python train.py --config french_char runs/french_char

The control of two_languages_char: the same model, as many sentences of this language an epoch, and
none of the other language. Expected: 7.79 and 8.14 nats a word on the tests, at most 14 minutes on
one CPU core.
"""

from configs import rnn_french
from configs.characters._shared import letter_model
from zoo import Experiment
from zoo.data import Mixed


def get_config() -> Experiment:
    corpora = (rnn_french.get_config().data,)
    return letter_model(Mixed(names=("french",), corpora=corpora, sentences=10_000))
