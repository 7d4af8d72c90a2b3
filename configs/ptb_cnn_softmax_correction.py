"""The Penn Treebank with output vectors from letters, corrected a little for each word.

    python train.py --config ptb_cnn_softmax_correction --workdir runs/ptb_cnn_softmax_correction
    python evaluate.py --workdir runs/ptb_cnn_softmax_correction

Jozefowicz et al. (2016), section 3.2: ptb_cnn_softmax with 32 learned numbers a word and their
projection, an eighth of the hidden size as in the paper. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_cnn_softmax
from zoo import Experiment


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_cnn_softmax.get_config()
    head = dataclasses.replace(base.model.head, correction=32)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, head=head))
