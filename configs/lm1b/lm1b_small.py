"""LSTM-512-512 shrunk to the billion words' held-out sentences, by importance sampling.

    python train.py --config lm1b_small runs/lm1b_small

For the order of the rows of Jozefowicz et al. (2016), table 1, on a CPU: lm1b_lstm_512_512 with 128
cells, projected to 128 numbers, 1,024 noise words and batch rows of 32, over 21,216 sentences with
their 30,000 most frequent words. Data: lm1b/1b_benchmark.dev.tokens and 1b_benchmark.test.tokens in
$ZOO_DATA, held-out parts of the benchmark, in which sentences are shuffled. Adagrad's rate is
twenty times the paper's: five epochs have 4,370 steps. Expected: test perplexity 252, at most 3
minutes on one CPU core.
"""

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import SMALL
from zoo.data import Vocabulary

get_config = variant(lm1b_lstm_2048_512, {**SMALL, "vocabulary": Vocabulary(maximum_size=30000)})
