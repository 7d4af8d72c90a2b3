"""Names of components in saved recipes: those of the packages that export them."""

import importlib
import subprocess
import sys

import pytest

from tests.lab.training import small
from zoo import configuration
from zoo.base import component_registry
from zoo.errors import UserError
from zoo.heads import NCE, Softmax, UniformNoise
from zoo.heads.sampled import SampledHead
from zoo.optimizers import Adam


def test_a_component_is_called_by_the_package_that_exports_it():
    assert configuration.to_json(NCE(noise=UniformNoise()))["component"] == "zoo.heads:NCE"
    assert configuration.to_json(NCE(noise=UniformNoise()))["noise"] == {
        "component": "zoo.heads:UniformNoise"
    }
    assert configuration.to_json(small.experiment())["component"] == "zoo:Experiment"
    assert configuration.to_json(Adam())["component"] == "zoo.optimizers:Adam"
    # What no package exports bears the name of its module.
    data = configuration.to_json(small.experiment())["data"]
    assert data["component"] == "tests.lab.training.small:RandomWords"


def test_names_do_not_depend_on_the_file(monkeypatch):
    """As though the class had moved to another file."""
    monkeypatch.setattr(Softmax, "__module__", "zoo.heads.elsewhere")
    assert component_registry.name_of(Softmax) == "zoo.heads:Softmax"
    assert component_registry.component("zoo.heads:Softmax") is Softmax
    assert component_registry.component("zoo.heads.elsewhere:Softmax") is None


@pytest.mark.parametrize("package", component_registry.PACKAGES)
def test_the_components_of_a_package_are_the_frozen_dataclasses_that_it_exports(package):
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", dir(module))
    frozen = {
        name
        for name in exported
        if getattr(getattr(module, name), "__dataclass_params__", None)
        and getattr(module, name).__dataclass_params__.frozen
    } - {"Lexicon", "Corpus", "Model1"}  # which hold data
    assert frozen
    for name in exported:
        expected = getattr(module, name) if name in frozen else None
        assert component_registry.component(f"{package}:{name}") is expected
    for name in frozen:
        assert component_registry.name_of(getattr(module, name)) == f"{package}:{name}"


@pytest.mark.parametrize(
    "name",
    [
        *("zoo.heads.softmax:Softmax", "zoo.heads.noise:Uniform"),
        *("zoo.heads.sampled:SampledHead", "zoo.heads:Head", "zoo.lexicon:Lexicon", "zoo:Lexicon"),
        *("zoo.errors:UserError", "zoo.heads:Gone", "zoo.heads", "", ":", "zoo.heads:NCE.loss"),
        *("os:system", "subprocess:Popen", "dataclasses:dataclass", "zoo.sources.files:Part"),
    ],
)
def test_what_is_no_component_is_none(name):
    assert component_registry.component(name) is None
    assert component_registry.imported(name) is None
    with pytest.raises(UserError, match=f"has the component {name}, which"):
        configuration.from_json({"component": name})


def test_a_class_that_the_program_has_imported_needs_no_table():
    name = "tests.lab.training.small:RandomWords"
    assert component_registry.imported(name) is small.RandomWords
    assert component_registry.imported("tests.lab.training.small:_Messages") is None  # no dataclass
    assert component_registry.imported("zoo.heads.sampled:SampledHead") is None  # zoo has a table
    assert SampledHead.__module__ == "zoo.heads.sampled"


def test_fields_that_are_no_part_of_a_recipe_are_not_read():
    recipe = {"component": "zoo.heads:SpreadUnknown", "lexicon": "words"}
    with pytest.raises(UserError, match="does not have the fields lexicon"):
        configuration.from_json(recipe | {"head": configuration.to_json(Softmax())})


def test_a_class_is_named_by_its_package_before_that_is_imported():
    program = (
        "from zoo.layers.char_convolution import Convolution\n"
        "from zoo.base import component_registry\n"
        "print(component_registry.name_of(Convolution))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["zoo.layers:Convolution"]
