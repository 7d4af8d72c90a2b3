"""The softmax RNN on French UD with the training of llrnn_french_best.

As rnn_french, with the same words, but with Adam on a cosine, dropout, an average of the
parameters, windows of 35 words and tied embeddings. What llrnn_french_best has besides are
features and a background. It is trained by importance sampling, on 2,048 noise
words a step, and evaluated over all 42,504. Its best epoch was the sixth; it was stopped by hand
after the ninth.

    python train.py --config rnn_french_best runs/rnn_french_best
    python evaluate.py runs/rnn_french_best

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, of one run: 5.929 and 6.009 nats
a word on the tests after nine epochs, at most 70 minutes on two CPU cores.
"""

from configs import rnn_french
from zoo import Experiment, Training, changed
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, UnigramNoise
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        rnn_french.get_config(),
        {
            "model.embedding": Lookup(size=400),
            "model.core": LSTM(size=400, layers=2, dropout=0.6, input_dropout=0.3),
            "model.head": ImportanceSampling(
                noise=UnigramNoise(power=0.75), samples=2048, distinct=True, tied=True
            ),
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
