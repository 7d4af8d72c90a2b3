"""One recipe of each kind of training, for what every kind has to keep: `recipe` changes it."""

import dataclasses

from tests.lab.training import small, test_tasks_translation
from tests.lab.training.reversal import Digits
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.data.batches import RandomWindows
from zoo.embeddings import Lookup
from zoo.experiment import Experiment
from zoo.heads import NCE, LogLinear, MixtureOfSoftmaxes
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Adagrad
from zoo.priors import KneserNey, TopWords

KINDS = {
    **small.MODELS,
    # Windows of random length, states emptied at random, masks of words, weights, states and
    # contexts, and a mean that begins within the run.
    "regularised": {
        "model": dataclasses.replace(
            small.MODEL,
            core=LSTM(
                10,
                layers=2,
                last_size=8,
                input_dropout=0.2,
                recurrent_dropout=0.3,
                variational=True,
            ),
            head=MixtureOfSoftmaxes(components=2, latent_dropout=0.2),
            word_dropout=0.2,
            output_dropout=0.3,
            activation_penalty=1.0,
            temporal_penalty=1.0,
        ),
        "length": 12,
        "windows": RandomWindows(half=0.5),
        "restart": 0.3,
        "average_after": 1,
        "epochs": 5,
        "optimizer": SGD(4.0),
    },
    # Its state is in the carry.
    "background": {
        "model": LanguageModel(
            Lookup(size=6, initial_scale=0.5),
            LSTM(size=7, dropout=0.3),
            LogLinear(initial_scale=0.5, background=KneserNey(3)),
        ),
        "vocabulary": Vocabulary(features=(TopWords(7, ("train",)),)),
    },
    "rows": {
        "model": dataclasses.replace(small.MODEL, head=NCE(samples=5)),
        "optimizer": Adagrad(0.3),
        "row_sparse": True,
    },
}
# Of pairs in buckets, and of a task that is no language model.
OTHER_KINDS = ("pairs", "digits", "digits by rows")


def recipe(name: str, sentences: int = 20, **training) -> Experiment:
    """The recipe of a kind; `training` changes what the kind does not set."""
    if name in KINDS:
        return small.experiment(**training | KINDS[name], sentences=sentences)
    if name == "pairs":
        return test_tasks_translation.experiment(**training)
    rows = name == "digits by rows"
    settings = {"row_sparse": True, "optimizer": Adagrad(0.3)} if rows else {"row_sparse": False}
    return small.experiment(Digits(sampled=rows), **training | settings)
