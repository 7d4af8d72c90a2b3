"""Shared parts: the core of BIG LSTM, the convolution over letters, and the small relatives' sizes.

Jozefowicz et al. (2016), table 1 and section 4.2. The paper leaves open how the 4,096 filters are
divided among widths: here eight widths, each with twice as many filters as the one before.
"""

from zoo.cores import LSTM
from zoo.data import Text
from zoo.embeddings import CharCNN
from zoo.heads import CNNSoftmax, ImportanceSampling, LogUniformNoise
from zoo.layers import Convolution
from zoo.lexicon.spelling import Spelling

BIG = LSTM(size=8192, layers=2, projection=1024, dropout=0.25, input_dropout=0.25)
LETTERS = Convolution(
    spelling=Spelling(longest=50),
    letter_size=16,
    widths=(1, 2, 3, 4, 5, 6, 7, 8),
    filters=(32, 32, 64, 128, 256, 512, 1024, 2048),
    pooling="max",
    highway=2,
)
LETTERS_IN = {"model.embedding": CharCNN(size=1024, network=LETTERS), "model.core": BIG}
# Output vectors come from the network, which ties all logits and so has "a much smaller learning
# rate" in the paper, here a tenth.
LETTERS_OUT = {
    "model.head": CNNSoftmax(
        network=LETTERS,
        sampled=ImportanceSampling(noise=LogUniformNoise(), samples=8192, distinct=True),
    ),
    "training.rates": (("head/network", 0.1),),
}
# 21,216, 1,500 and 1,605 sentences of the files that are published one by one.
HELD_OUT = "lm1b/1b_benchmark.*.tokens"
SMALL = {
    "data": Text(
        train=f"{HELD_OUT}[:21216]",
        validation=f"{HELD_OUT}[21216:22716]",
        tests=(f"{HELD_OUT}[22716:]",),
    ),
    "model.embedding.size": 128,
    "model.core.size": 128,
    "model.core.projection": 128,
    "model.head.samples": 1024,
    "training.batch": 32,
    "training.optimizer.learning_rate": 4.0,
    "training.validate_every": 0,
    "evaluation.batch": 8,
}
