"""The Penn Treebank with a small LSTM that spells the next word.

    python train.py --config ptb_char_lstm --workdir runs/ptb_char_lstm
    python evaluate.py --workdir runs/ptb_char_lstm
    python evaluate.py --workdir runs/ptb_char_lstm --renormalise

Jozefowicz et al. (2016), section 3.3; trained from the start, not on a frozen word model. The first
perplexity is over all spellings; the second is over the words of the lexicon and costs as many
spellings a token as there are words. Data, core and budget are those of ptb_softmax.
Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.heads import CharLSTM


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = CharLSTM(size=128)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, head=head))
