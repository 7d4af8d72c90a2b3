"""BIG LSTM with character inputs on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_inputs runs/lm1b_cnn_inputs

Jozefowicz et al. (2016), table 1, BIG + CNN inputs: test perplexity 30.0, 1.04 billion parameters;
not run here. 4,096 filters with maximum pooling and two highway layers, words cut at 50 letters;
the paper leaves open how the filters are divided among widths: here eight widths, each with twice
as many filters as the one before. All else is as in lm1b_big.
"""

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import LETTERS_IN

get_config = variant(lm1b_lstm_2048_512, LETTERS_IN)
