"""The optimisers' former place, which saved runs still name; they are in `zoo.optimizers`."""

from zoo.optimizers import SGD, Adagrad, Adam, Constant, Cosine, Decay, RMSProp

__all__ = ["SGD", "Adagrad", "Adam", "Constant", "Cosine", "Decay", "RMSProp"]
