"""BIG LSTM, characters in and out, corrected, on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_softmax_correction --workdir runs/lm1b_cnn_softmax_correction
    python evaluate.py --workdir runs/lm1b_cnn_softmax_correction

Jozefowicz et al. (2016), table 1, the same + 128-dim correction: test perplexity 35.8, 0.39
billion parameters; not run here. Everything else is as in lm1b_cnn_inputs: of the corrections, too,
a step updates those of the target and noise words alone. The network has a tenth of the learning
rate, as in lm1b_cnn_softmax.
"""

import dataclasses

from configs import lm1b_cnn_inputs
from zoo import Experiment
from zoo.heads import CNNSoftmax


def get_config() -> Experiment:
    """The experiment."""
    base = lm1b_cnn_inputs.get_config()
    head = CNNSoftmax(network=lm1b_cnn_inputs.NETWORK, sampled=base.model.head, correction=128)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
        training=dataclasses.replace(base.training, rates=(("head/network", 0.1),)),
    )
