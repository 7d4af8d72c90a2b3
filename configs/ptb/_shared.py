"""Shared parts of the models with letters: the small network of Kim et al. (2016)."""

from zoo.layers.char_convolution import Convolution

KIM = Convolution(
    letter_size=15,
    widths=(1, 2, 3, 4, 5, 6),
    filters=(25, 50, 75, 100, 125, 150),
    pooling="max",
    activation="tanh",
    highway=1,
)
