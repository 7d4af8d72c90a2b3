"""A softmax on the Penn Treebank: what the heads of the other ptb_ configs are measured by.

    python train.py --config ptb_softmax --workdir runs/ptb_softmax
    python evaluate.py --workdir runs/ptb_softmax

One core and one budget for all ptb_ configs: 256 LSTM cells, five epochs of stochastic gradient
descent; only the head differs. Figures count every word and </s>, with <unk> as a word and the
state carried over sentences. Data: ptb/ (Mikolov's files) in $ZOO_DATA. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_small
from zoo import Experiment
from zoo.cores import LSTM
from zoo.heads import Softmax


def get_config() -> Experiment:
    """The experiment: the data and the optimiser of ptb_small, fewer epochs, a smaller core."""
    base = ptb_small.get_config()
    core = LSTM(size=256, dropout=0.2, input_dropout=0.2)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, core=core, head=Softmax()),
        training=dataclasses.replace(base.training, epochs=5),
    )
