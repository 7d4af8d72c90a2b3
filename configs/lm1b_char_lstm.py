"""BIG LSTM that spells the next word, on the 1 Billion Word benchmark.

    python train.py --config lm1b_char_lstm --workdir runs/lm1b_char_lstm
    python evaluate.py --workdir runs/lm1b_char_lstm

Jozefowicz et al. (2016), table 1, BIG + CNN inputs + char-LSTM predictions: test perplexity 49.0,
47.9 after renormalising over V (--renormalise, for a few sentences given with --data: a position
takes the spellings of all words), 0.23 billion parameters; not run here. The paper trains the
speller on a frozen, converged word model: --set init_from=runs/lm1b_cnn_inputs --set
'training.frozen=("embedding","core")'; without these everything is trained together. Its size is
open in the paper; 1,024 cells give its parameters. Everything else is as in lm1b_cnn_inputs, but
that no table is updated by rows, for there is none.
"""

import dataclasses

from configs import lm1b_cnn_inputs
from zoo import Experiment
from zoo.heads import CharLSTM


def get_config() -> Experiment:
    """The experiment."""
    base = lm1b_cnn_inputs.get_config()
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=CharLSTM(size=1024)),
        training=dataclasses.replace(base.training, row_sparse=False),
    )
