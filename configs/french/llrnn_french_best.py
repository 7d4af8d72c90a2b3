"""The log-linear RNN on French UD, with Adam, dropout and an average.

As llrnn_french, with the same words and background, but trained with Adam on a cosine, dropout, an
average of the parameters, and windows of 35 words. The last two letters of a word are features,
too: by their tags alone all rare words of a tag would be equal.

    python train.py --config llrnn_french_best runs/llrnn_french_best
    python evaluate.py runs/llrnn_french_best

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, of one run: 5.185 and 5.186 nats
a word on the tests, at most 28 minutes on one of two CPU cores.
"""

from configs import rnn_french
from zoo import Experiment, Training, changed, priors
from zoo.cores import LSTM
from zoo.embeddings import Features
from zoo.heads import LogLinear
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        rnn_french.get_config(),
        {
            "vocabulary.features": (
                priors.TopWords(count=2500),
                priors.Morphology(),
                priors.Affixes(prefixes=(), suffixes=(2,)),
            ),
            "vocabulary.background": priors.Unigram(),
            "model.embedding": Features(size=256),
            "model.core": LSTM(size=400, layers=2, dropout=0.6, input_dropout=0.3),
            "model.head": LogLinear(),
            "training": Training(
                batch=32,
                length=35,
                shuffle=True,
                optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=200)),
                clip=1.0,
                average=0.999,
                epochs=20,
            ),
        },
    )
