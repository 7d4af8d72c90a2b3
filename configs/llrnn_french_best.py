"""The best training found for the log-linear RNN on French UD.

As llrnn_french, with the same words and background, but trained with Adam on a cosine, dropout, an
average of the parameters, and windows of 35 words. The last two letters of a word are features,
too, for the tags alone make all rare words of a tag alike.

    python train.py --config llrnn_french_best --workdir runs/llrnn_french_best
    python evaluate.py --workdir runs/llrnn_french_best

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Results: docs/results.md.
"""

import dataclasses

from configs import llrnn_french
from zoo import Experiment, Training, priors
from zoo.cores import LSTM
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """The experiment."""
    base = llrnn_french.get_config()
    suffixes = priors.Affixes(prefixes=(), suffixes=(2,))
    return dataclasses.replace(
        base,
        vocabulary=dataclasses.replace(
            base.vocabulary, features=(*base.vocabulary.features, suffixes)
        ),
        model=dataclasses.replace(
            base.model, core=LSTM(size=400, layers=2, dropout=0.6, input_dropout=0.3)
        ),
        training=Training(
            batch=32,
            length=35,
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=200)),
            clip=1.0,
            average=0.999,
            epochs=20,
        ),
    )
