"""Shared parts of the recipes of the French treebank: log-linear models, and a longer training."""

from zoo import Training, priors
from zoo.cores import LSTM
from zoo.embeddings import Features
from zoo.heads import LogLinear
from zoo.optimizers import Adam, Cosine

TRAIN = ("train",)
SOME_WORDS = priors.TopWords(count=2500, splits=TRAIN)
# Tags from another treebank, whose gold tags are independent of the tests.
SEQUOIA = priors.Morphology(
    splits=TRAIN,
    treebanks=("ud_french_sequoia/fr_sequoia-ud-train.conllu",),
    guesser=priors.SuffixGuesser(),
)
# What only the training text knows.
BACKGROUND = priors.Unigram(splits=TRAIN, smoothing=0.5)
LOG_LINEAR = {"model.embedding": Features(size=256), "model.head": LogLinear()}
# Of llrnn_french_best and rnn_french_best: Adam on a cosine, dropout, an average.
BEST = {
    "model.core": LSTM(size=400, layers=2, dropout=0.6, input_dropout=0.3),
    "training": Training(
        batch=32,
        length=35,
        shuffle=True,
        optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=200)),
        clip=1.0,
        average=0.999,
        epochs=20,
    ),
}
