"""The text of all models, and the heads that other families have, too."""

from zoo.cores import LSTM
from zoo.data import Text
from zoo.embeddings import Lookup
from zoo.heads import (
    NCE,
    CNNSoftmax,
    HierarchicalSoftmax,
    ImportanceSampling,
    MixtureOfSoftmaxes,
    UnigramNoise,
)
from zoo.layers import Convolution
from zoo.optimizers import Adam, Cosine

PTB = Text(train="ptb/ptb.train.txt", validation="ptb/ptb.valid.txt", tests=("ptb/ptb.test.txt",))
SAMPLED = ImportanceSampling(noise=UnigramNoise(power=0.75), samples=1024, distinct=True)
IS = {"model.head": SAMPLED, "training.row_sparse": True}
NOISE_CONTRASTIVE = {
    "model.head": NCE(noise=UnigramNoise(), samples=100, noise_per="row"),
    "training.row_sparse": True,
    "training.optimizer.learning_rate": 40.0,
}
HIERARCHICAL = {"model.head": HierarchicalSoftmax()}
MIXTURE = {"model.head": MixtureOfSoftmaxes(components=3, size=237)}
# The small network of Kim et al. (2016), trained by importance sampling.
KIM = CNNSoftmax(
    Convolution(
        letter_size=15,
        widths=(1, 2, 3, 4, 5, 6),
        filters=(25, 50, 75, 100, 125, 150),
        pooling="max",
        activation="tanh",
        highway=1,
    ),
    sampled=SAMPLED,
)
LETTERS_OUT = {
    "model.head": KIM,
    "training.optimizer": Adam(learning_rate=0.002, schedule=Cosine(warmup=100)),
    "training.clip": 1.0,
}
# Changes of ptb_awd_lstm for a CPU: two layers, and SGD whose rate falls, in place of an average.
SMALL_AWD = {
    "model.embedding": Lookup(size=300),
    "model.core": LSTM(
        size=450,
        layers=2,
        last_size=300,
        input_dropout=0.21,
        dropout=0.175,
        last_dropout=0.0,
        recurrent_dropout=0.21,
        variational=True,
    ),
    "model.word_dropout": 0.035,
    "model.output_dropout": 0.245,
    "training.batch": 20,
    "training.length": 35,
    "training.optimizer.schedule": Cosine(),
    "training.average_after": None,
    "training.epochs": 40,
}
