"""BIG LSTM, characters in and out, corrected, on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_softmax_correction runs/lm1b_cnn_softmax_correction

Jozefowicz et al. (2016), table 1, the same + 128-dim correction: test perplexity 35.8, 0.39 billion
parameters; not run here. All else is as in lm1b_cnn_inputs: a step also updates only the target and
noise words' corrections. The network has a tenth of the learning rate, as in lm1b_cnn_softmax.
"""

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import LETTERS_IN, LETTERS_OUT

get_config = variant(
    lm1b_lstm_2048_512, {**LETTERS_IN, **LETTERS_OUT, "model.head.correction": 128}
)
