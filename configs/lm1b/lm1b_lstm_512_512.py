"""LSTM-512-512 on the 1 Billion Word benchmark.

    python train.py --config lm1b_lstm_512_512 runs/lm1b_lstm_512_512

Jozefowicz et al. (2016), table 1: test perplexity 54.1, 0.82 billion parameters; not run here.
Everything but the sizes and dropout is as in lm1b_lstm_2048_512.
"""

from configs import lm1b_lstm_2048_512, variant

get_config = variant(lm1b_lstm_2048_512, {"model.core.size": 512})
