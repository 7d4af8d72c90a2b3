"""BIG LSTM with characters in and out on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_softmax --workdir runs/lm1b_cnn_softmax
    python evaluate.py --workdir runs/lm1b_cnn_softmax

Jozefowicz et al. (2016), table 1, BIG + CNN inputs + CNN softmax: test perplexity 39.8, 0.29
billion parameters; not run here. Everything else is as in lm1b_cnn_inputs, but that no table is
updated by rows, for the output vectors of a step come from the network, which ties all logits and
so has "a much smaller learning rate" in the paper: here a tenth.
"""

import dataclasses

from configs import lm1b_cnn_inputs
from zoo import Experiment
from zoo.heads import CNNSoftmax


def get_config() -> Experiment:
    """The experiment."""
    base = lm1b_cnn_inputs.get_config()
    head = CNNSoftmax(network=lm1b_cnn_inputs.NETWORK, sampled=base.model.head)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
        training=dataclasses.replace(
            base.training, row_sparse=False, rates=(("head/network", 0.1),)
        ),
    )
