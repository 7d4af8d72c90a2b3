"""Recipes as JSON, and back."""

import dataclasses
import json

import pytest

import configs
from tests.configuration.test_overrides import apply_settings
from zoo import configuration, cores, models
from zoo.errors import UserError
from zoo.heads import Softmax


@pytest.mark.parametrize("name", configs.names())
def test_json_and_back(name):
    recipe = configs.load(name)
    text = json.dumps(configuration.to_json(recipe))
    assert configuration.from_json(json.loads(text)) == recipe
    assert configuration.first_difference(json.loads(text), configuration.to_json(recipe)) is None


def test_a_saved_recipe_without_a_field_names_it():
    saved_recipe = configuration.to_json(apply_settings("training.batch=8", "training.length=3"))
    del saved_recipe["training"]["length"]
    with pytest.raises(
        UserError,
        match=r"^zoo:Training has no field training\.length in the saved recipe: write its value",
    ):
        configuration.from_json(saved_recipe)


def test_a_field_that_came_later_has_its_default_where_a_saved_recipe_lacks_it():
    model = models.SequenceToSequence(encoder=cores.Bidirectional(cores.LSTM(5)))
    saved = configuration.to_json(model)
    for name in ("bridge", "input_feeding", "source_boundary"):
        del saved[name]
    del saved["encoder"]["layers"]
    assert configuration.from_json(saved) == model
    del saved["order"]
    with pytest.raises(UserError, match=r"SequenceToSequence has no field order in the saved re"):
        configuration.from_json(saved)


def test_a_component_defined_in_a_config_file_comes_back_from_json(tmp_path):
    path = tmp_path / "llrnn_french.py"
    path.write_text(OWN_CONFIG)
    recipe = configs.load(str(path))
    assert recipe.model.head.scale == 2.0
    assert configuration.from_json(configuration.to_json(recipe)) == recipe
    assert type(recipe.model.head).__module__.startswith("config_llrnn_french_")
    in_folder = configs.load(str(configs.paths()["llrnn_french"]))
    assert in_folder == configs.load("llrnn_french") != recipe


OWN_CONFIG = """
import dataclasses
from zoo import Experiment
from zoo.data import Text
from zoo.heads import Softmax
from zoo.models import LanguageModel

@dataclasses.dataclass(frozen=True)
class Scaled(Softmax):
    scale: float = 2.0

def get_config():
    return Experiment(Text("a.txt", "b.txt"), model=LanguageModel(head=Scaled()))
"""


def test_an_error_of_ones_own_component_is_let_through():
    saved = configuration.to_json(Picky(scale=1))
    assert configuration.from_json(saved) == Picky(scale=1)
    with pytest.raises(TypeError, match=r"^mine$"):
        configuration.from_json(saved | {"scale": 0})
    with pytest.raises(UserError, match=r"Picky has no field tied in the saved recipe: wri"):
        configuration.from_json({"component": saved["component"]})


@dataclasses.dataclass(frozen=True)
class Picky(Softmax):
    scale: int = dataclasses.field(kw_only=True)

    def __post_init__(self):
        if not self.scale:
            raise TypeError("mine")
