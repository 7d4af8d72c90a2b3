"""BIG LSTM with characters in and out on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_softmax runs/lm1b_cnn_softmax

Jozefowicz et al. (2016), table 1, BIG + CNN inputs + CNN softmax: test perplexity 39.8, 0.29
billion parameters; not run here. All else is as in lm1b_cnn_inputs, except that no table is updated
by rows: output vectors come from the network, which ties all logits and so has "a much smaller
learning rate" in the paper, here a tenth.
"""

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import LETTERS_IN, LETTERS_OUT

get_config = variant(
    lm1b_lstm_2048_512, {**LETTERS_IN, **LETTERS_OUT, "training.row_sparse": False}
)
