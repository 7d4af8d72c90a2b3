"""Variants trained side by side are the runs that train.py would make of them."""

import json

import numpy as np
import pytest

import zoo
from benchmarks import ingredients
from zoo import priors
from zoo.configuration.fields import changed
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import (
    AdaptiveSoftmax,
    CNNSoftmax,
    ImportanceSampling,
    LogLinear,
    MixtureOfSoftmaxes,
    Softmax,
)
from zoo.layers.char_convolution import Convolution
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Adagrad, Adam, Cosine

LINES = "le chat dort\nles chats dorment ici\nle chien voit le chat\nles chiens voient les chats\n"


@pytest.fixture
def recipe(tmp_path):
    """Two batch rows; the last window of an epoch is shorter than the others."""
    for name in ("train", "validation", "test"):
        (tmp_path / name).write_text(LINES * (3 if name == "train" else 1))
    core = LSTM(
        size=7,
        layers=2,
        last_size=5,
        input_dropout=0.2,
        dropout=0.1,
        last_dropout=0.0,
        recurrent_dropout=0.4,
        variational=True,
    )
    return Experiment(
        data=Text(
            train=str(tmp_path / "train"),
            validation=str(tmp_path / "validation"),
            tests=(str(tmp_path / "test"),),
        ),
        vocabulary=Vocabulary(),
        model=LanguageModel(
            Lookup(5),
            core,
            Softmax(tied=True),
            word_dropout=0.25,
            output_dropout=0.3,
            activation_penalty=2.0,
            temporal_penalty=1.0,
        ),
        training=Training(
            batch=2,
            length=5,
            optimizer=SGD(2.0, weight_decay=1e-3, schedule=Cosine()),
            clip=0.25,
            epochs=2,
        ),
        evaluation=Evaluation(state="carried", batch=1, length=70),
    )


def runs_like_variants(recipe, variants, folder):
    """Trains variants, and each of them by zoo.train; their validation must be equal."""
    trainer = ingredients.Variants(recipe, variants)
    nats, tokens = trainer.sentence_losses(trainer.train(), trainer.task.corpora["validation"])
    assert tokens.tolist() == [4, 5, 6, 6]  # words and the end
    for losses, (name, settings) in zip(nats, variants.items(), strict=True):
        zoo.train(changed(recipe, settings), folder / name, devices=1, log=lambda line: None)
        last = json.loads((folder / name / "metrics.jsonl").read_text().splitlines()[-1])
        np.testing.assert_allclose(
            losses.sum() / tokens.sum(), last["validation_log_perplexity"], rtol=1e-5
        )


@pytest.mark.slow
def test_variants_have_the_figures_of_runs(recipe, tmp_path):
    """zoo.train with the settings of a variant ends with the same validation."""
    variants = {
        "all": {},
        "without the masks of U": {"model.core.recurrent_dropout": 0.0},
        "another seed and rate": {"training.seed": 3, ingredients.RATE: 1.0},
        "without penalties": {"model.activation_penalty": 0.0, "model.temporal_penalty": 0.0},
    }
    runs_like_variants(recipe, variants, tmp_path)


LETTERS = Convolution(letter_size=4, widths=(1, 2), filters=(3, 4))
ADAM = Adam(0.02, weight_decay=0.1, schedule=Cosine(warmup=3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "optimizer"),
    [
        (MixtureOfSoftmaxes(components=3), SGD(2.0, momentum=0.5)),
        (AdaptiveSoftmax(cutoffs=(3, 6)), Adagrad(0.1)),
        (CNNSoftmax(LETTERS), ADAM),
        (CNNSoftmax(LETTERS, sampled=ImportanceSampling(samples=4)), ADAM),
        (LogLinear(), ADAM),
    ],
    ids=["mixture", "adaptive", "cnn", "cnn_sampled", "log_linear"],
)
def test_heads_and_optimisers_are_followed(recipe, head, optimizer, tmp_path):
    """Rates of any optimiser, and heads that are sampled or have tables."""
    features = (priors.TopWords(3), priors.Affixes(suffixes=(1, 2)))
    changes = {
        "model.head": head,
        "training.optimizer": optimizer,
        "vocabulary.features": features if isinstance(head, LogLinear) else (),
    }
    variants = {"all": {}, "half the rate": {ingredients.RATE: optimizer.learning_rate / 2}}
    if optimizer is ADAM:
        variants["no decay"] = {ingredients.DECAY: 0.0}
    runs_like_variants(changed(recipe, changes), variants, tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("training.optimizer.learning_rate", 0.0),
        ("training.average_after", 0),
        ("training.shuffle", True),
        ("evaluation.state", "sentences"),
        ("model.core.variational", False),
    ],
)
def test_what_variants_do_not_follow_is_refused(recipe, path, value):
    """Fields that variants ignore, and that would change the training of train.py."""
    with pytest.raises(UserError, match=r"variants"):
        ingredients.Variants(changed(recipe, {path: value}), {"all": {}})


def test_each_ingredient_is_left_out(recipe):
    """Three seeds of the recipe, and of the recipe without each of its eight ingredients."""
    variants = ingredients.ablations(recipe)
    assert len(variants) == 3 * 9
    without = {"model.word_dropout": 0.0, "training.seed": 2}
    assert variants["without word_dropout, seed 2"] == without
    assert len(ingredients.ablations(changed(recipe, {"model.word_dropout": 0.0}))) == 3 * 8
