"""The softmax RNN on French UD with the training of llrnn_french_best.

As rnn_french, with the same words, but with Adam on a cosine, dropout, an average of the
parameters, windows of 35 words and tied embeddings. What llrnn_french_best has besides are features
and a background. It is trained by importance sampling, on 2,048 noise words a step, and evaluated
over all 42,504. Its best epoch was the sixth; it was stopped by hand after the ninth.

    python train.py --config rnn_french_best runs/rnn_french_best

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, of one run: 5.929 and 6.009 nats
a word on the tests after nine epochs, at most 70 minutes on two CPU cores.
"""

from configs import rnn_french, variant
from configs.french._shared import BEST
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, UnigramNoise

get_config = variant(
    rnn_french,
    {
        **BEST,
        "model.embedding": Lookup(size=400),
        "model.head": ImportanceSampling(
            noise=UnigramNoise(power=0.75), samples=2048, distinct=True, tied=True
        ),
    },
)
