"""BIG LSTM that spells the next word, on the 1 Billion Word benchmark.

    python train.py --config lm1b_char_lstm runs/lm1b_char_lstm

Jozefowicz et al. (2016), table 1, BIG + CNN inputs + char-LSTM predictions: test perplexity 49.0,
47.9 after renormalising over V (--renormalise, for a few sentences given with --data: every
position sums over the spellings of all words), 0.23 billion parameters; not run here. The paper
trains the speller on a frozen, converged word model: --set init_from=runs/lm1b_cnn_inputs --set
'training.frozen=("embedding","core")'; without these all is trained together. The paper leaves open
the speller's size; 1,024 cells give its number of parameters. All else is as in lm1b_cnn_inputs,
except that no table is updated by rows, as the model does not have any.
"""

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import LETTERS_IN
from zoo.heads import CharLSTM

get_config = variant(
    lm1b_lstm_2048_512,
    {**LETTERS_IN, "model.head": CharLSTM(size=1024), "training.row_sparse": False},
)
