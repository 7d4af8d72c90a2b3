"""Recipes made from other ones by the fields that differ."""

import pytest

from zoo import Experiment, changed
from zoo.cores import LSTM
from zoo.data import Text
from zoo.embeddings import Concat, Lookup
from zoo.errors import UserError
from zoo.heads import NCE, Softmax

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
    "training.batch.size": (1, "nothing is below a value such as 32; drop .size"),
    "data.tests.0": ("c.txt", "'0' is none of the 0 items there"),
    "training.epochs": (0, "^training.epochs is 0: give at least 1"),
    "": (1, "Experiment has no field ''"),
}


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_change_is_one_clear_sentence(path):
    value, message = WRONG[path]
    with pytest.raises(UserError, match=message):
        changed(RECIPE, {path: value})
