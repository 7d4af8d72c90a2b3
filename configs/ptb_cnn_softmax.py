"""The Penn Treebank with output vectors from the letters of words.

    python train.py --config ptb_cnn_softmax --workdir runs/ptb_cnn_softmax
    python evaluate.py --workdir runs/ptb_cnn_softmax

Jozefowicz et al. (2016), section 3.2, with the small network of Kim et al. (2016), trained by
importance sampling as there: the vectors of some thousand words a step are computed, not of all.
Data and core are those of ptb_softmax, and so are the epochs; logits that are tied by the network
need smaller steps, here Adam's. The perplexity is the exact one. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.convolution import Convolution
from zoo.heads import CNNSoftmax, ImportanceSampling, UnigramNoise
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = CNNSoftmax(
        Convolution(
            letter_size=15,
            widths=(1, 2, 3, 4, 5, 6),
            filters=(25, 50, 75, 100, 125, 150),
            pooling="max",
            activation="tanh",
            highway=1,
        ),
        sampled=ImportanceSampling(noise=UnigramNoise(power=0.75), samples=1024, distinct=True),
    )
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
        training=dataclasses.replace(
            base.training,
            optimizer=Adam(learning_rate=0.002, schedule=Cosine(warmup=100)),
            clip=1.0,
        ),
    )
