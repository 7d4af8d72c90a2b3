"""Recipes made from others by the fields that differ, and slips in them that Python lets pass."""

import dataclasses

import pytest

from zoo import Experiment, Training, changed, priors
from zoo.configuration import apply_settings
from zoo.configuration.fields import check_types as check
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import CharCNN, Concat, Lookup
from zoo.errors import UserError
from zoo.heads import NCE, LogLinear, Softmax
from zoo.layers.char_convolution import Convolution
from zoo.models import LanguageModel

RECIPE = Experiment(data=Text(train="a.txt", validation="b.txt"))


def test_what_is_named_changes_and_nothing_else():
    recipe = changed(
        RECIPE, {"model.head": NCE(samples=7), "model.head.samples": 8, "init_from": "x"}
    )
    assert recipe.model.head == NCE(samples=8)  # in their order
    assert recipe.init_from == "x"
    assert changed(recipe, {"model.head": Softmax(), "init_from": ""}) == RECIPE
    assert changed(RECIPE, {}) == RECIPE


def test_items_of_a_tuple_are_named_by_their_numbers():
    recipe = changed(RECIPE, {"model.embedding": Concat((Lookup(size=3), Lookup(size=4)))})
    recipe = changed(recipe, {"model.embedding.parts.1.size": 5})
    assert recipe.model.embedding == Concat((Lookup(size=3), Lookup(size=5)))


WRONG = {
    "model.heed": (Softmax(), "LanguageModel has no field 'heed'; the nearest are head"),
    "model.head": (LSTM(), "^model.head is LSTM: give a Head, such as "),
    "training.batch": (1.5, "^training.batch is 1.5, of type float: give a whole number"),
    "training.clip": ("0.5", "^training.clip is '0.5', of type str: give a number"),
    "training.batch.size": (1, "the value 32 has no fields: leave out .size"),
    "data.tests.0": ("c.txt", "'0' is not one of the 0 items there"),
    "training.epochs": (0, "^training.epochs is 0: give at least 1"),
    "": (1, "Experiment has no field ''"),
}


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_change_is_one_clear_sentence(path):
    value, message = WRONG[path]
    with pytest.raises(UserError, match=message):
        changed(RECIPE, {path: value})


def test_fields_that_need_each_other_are_put_there_together():
    network = "model.embedding.network"
    fields = {
        f"{network}.widths": (1, 2),
        f"{network}.pooling": "max",
        f"{network}.filters": (3, 4),
    }
    for changes in (fields, dict(reversed(fields.items()))):
        embedding = changed(RECIPE, {"model.embedding": CharCNN(), **changes}).model.embedding
        assert embedding == CharCNN(
            network=Convolution(widths=(1, 2), filters=(3, 4), pooling="max")
        )
    settings = [f"{path}={value}" for path, value in fields.items()]
    letters = apply_settings(RECIPE, ["model.embedding=CharCNN", *settings]).model.embedding
    assert letters == embedding
    assert changed(Convolution(), {"widths": (1, 2), "filters": (3, 4)}).filters == (3, 4)
    base = changed(RECIPE, {"model.embedding": CharCNN()})
    with pytest.raises(UserError, match=r"widths=1,2: filters of Convolution are \(3, 4, 5\): "):
        apply_settings(base, [f"{network}.widths=1,2", f"{network}.filters=3,4,5"])
    with pytest.raises(UserError, match=r"no field 'filtres'; the nearest are filters"):
        changed(base, {f"{network}.widths": (1, 2), f"{network}.filtres": (3, 4)})
    with pytest.raises(UserError, match=r"changed: widths: filters of Convolution are \(3,\)"):
        changed(Convolution(), {"widths": (1, 2), "filters": (3,)})


def test_a_component_is_put_in_before_its_fields():
    """In the other order it would undo them, and nothing would say so."""
    settings = ["training.optimizer.learning_rate=0.5", "training.optimizer=Adam"]
    message = (
        r"^--set training\.optimizer=Adam would undo --set training\.optimizer\.learning_rate=0\.5"
        ": give it before that"
    )
    with pytest.raises(UserError, match=message):
        apply_settings(RECIPE, settings)
    assert apply_settings(RECIPE, settings[::-1]).training.optimizer.learning_rate == 0.5
    with pytest.raises(UserError, match=r"^changed: model\.head would undo changed: model\.head\."):
        changed(RECIPE, {"model.head.tied": True, "model.head": Softmax()})
    # The same field twice is no mistake, nor are two of one component.
    assert apply_settings(RECIPE, ["training.batch=3", "training.batch=5"]).training.batch == 5
    core = apply_settings(RECIPE, ["model.core.dropout=0.5", "model.core.size=7"]).model.core
    assert (core.dropout, core.size) == (0.5, 7)


TEXT = Text("a", "b", ("c",))
SLIPS = {
    "vocabulary.background is KneserNey: give a Background, such as Uniform, Unigram": {
        "vocabulary": Vocabulary(background=priors.KneserNey())
    },
    "model.head.background is Unigram: give a ContextualBackground, such as Arpa": {
        "model": LanguageModel(head=LogLinear(background=priors.Unigram()))
    },
    "vocabulary.splits is 'train', of type str: give a tuple, with a comma if": {
        "vocabulary": Vocabulary(splits="train")
    },
    "vocabulary.features is TopWords: give a tuple, with a comma if": {
        "vocabulary": Vocabulary(features=priors.TopWords(5))
    },
    "vocabulary.features.1 is Unigram: give a FeaturePrior, such as Affixes": {
        "vocabulary": Vocabulary(features=(priors.TopWords(5), priors.Unigram()))
    },
    "training.optimizer is 'Adam', of type str: give an Optimizer, such as Adagrad": {
        "training": Training(optimizer="Adam")
    },
}


@pytest.mark.parametrize("message", SLIPS)
def test_a_slip_is_named(message):
    with pytest.raises(UserError) as caught:
        Experiment(**({"data": TEXT} | SLIPS[message]))
    assert message in str(caught.value)


@dataclasses.dataclass(frozen=True)
class Rates:
    groups: tuple[tuple[str, float], ...]


def test_tuples_have_their_length():
    check(Rates((("head", 0.1), ("core", 2))), "training")
    with pytest.raises(
        UserError, match=r"^training\.groups\.1 is \('core',\), .*: give a tuple of 2\.$"
    ):
        check(Rates((("head", 0.1), ("core",))), "training")


def test_what_is_right_passes():
    tuples = Training(rates=(("head", 0.1), ("core", 2)), frozen=("embedding",), average=0)
    check(Experiment(TEXT, training=tuples))
