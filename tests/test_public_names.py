"""Names of components in saved recipes: every form that there ever was is read.

recipes/*.json are experiments, and parts of them, as zoo saved them at one time or another:
training_optimizers when optimisers were the trainer's, noise when noises had other names, files
when a component bore the name of its file, packages since it bears that of its package.
"""

import importlib
import inspect
import json
import pathlib

import pytest

from tests.training import small
from zoo import recipes
from zoo.errors import UserError
from zoo.heads import NCE, Softmax, UniformNoise
from zoo.heads.sampled import SampledHead
from zoo.optimizers import Adam
from zoo.trust import public_names

SAVED = {
    f"{path.stem}, {name}": recipe
    for path in sorted(pathlib.Path(__file__).parent.glob("recipes/*.json"))
    for name, recipe in json.loads(path.read_text(encoding="utf-8")).items()
}
RENAMED = {"Uniform": "UniformNoise", "LogUniform": "LogUniformNoise", "Unigram": "UnigramNoise"}


def without_defaults(now, saved):
    """What is read of a recipe, in the fields that were saved, and with classes alone as names."""
    if isinstance(saved, dict):
        fields = {name: without_defaults(now[name], item) for name, item in saved.items()}
        return fields | {"component": now["component"].partition(":")[2]}
    if isinstance(saved, list):
        return [without_defaults(one, item) for one, item in zip(now, saved, strict=True)]
    return now


def with_new_names(saved):
    if isinstance(saved, dict):
        module, _, name = saved["component"].partition(":")
        name = RENAMED.get(name, name) if module == "zoo.heads.noise" else name
        return {field: with_new_names(item) for field, item in saved.items()} | {"component": name}
    return [*map(with_new_names, saved)] if isinstance(saved, list) else saved


@pytest.mark.parametrize("name", SAVED)
def test_a_recipe_of_any_form_is_read(name):
    saved = SAVED[name]
    now = recipes.to_json(recipes.from_json(saved))
    assert without_defaults(now, saved) == with_new_names(saved)
    if name.startswith("packages"):
        assert without_defaults(now, saved) == without_defaults(saved, saved)
        assert now["component"] == saved["component"]


def test_the_kept_recipes_have_all_forms():
    text = json.dumps(SAVED)
    # These were never a config's own, or make no recipe of themselves.
    rare = {"zoo.heads.spread_unknown:SpreadUnknown", "zoo.heads.noise:Uniform"}
    rare |= {"zoo.heads.noise:LogUniform"}
    former = [name for name in public_names.FORMER if "training.optimizers" not in name]
    assert {name for name in former if f'"{name}"' not in text} == rare
    for name in ("zoo.heads:NCE", "zoo.training.optimizers:Adam", "zoo.heads.noise:Unigram"):
        assert f'"{name}"' in text


def test_a_component_is_called_by_the_package_that_exports_it():
    assert recipes.to_json(NCE(noise=UniformNoise()))["component"] == "zoo.heads:NCE"
    assert recipes.to_json(NCE(noise=UniformNoise()))["noise"] == {
        "component": "zoo.heads:UniformNoise"
    }
    assert recipes.to_json(small.experiment())["component"] == "zoo:Experiment"
    assert recipes.to_json(Adam())["component"] == "zoo.optimizers:Adam"
    # What no package exports bears the name of its module.
    data = recipes.to_json(small.experiment())["data"]
    assert data["component"] == "tests.training.small:RandomWords"


def test_names_do_not_depend_on_the_file(monkeypatch):
    """As though the class had moved to another file."""
    monkeypatch.setattr(Softmax, "__module__", "zoo.heads.elsewhere")
    assert public_names.name_of(Softmax) == "zoo.heads:Softmax"
    for name in ("zoo.heads:Softmax", "zoo.heads.softmax:Softmax"):
        assert public_names.component(name) is Softmax
    assert public_names.component("zoo.heads.elsewhere:Softmax") is None


@pytest.mark.parametrize("package", public_names.COMPONENTS)
def test_the_table_has_what_the_packages_export(package):
    """A component that is exported and not in the table would be saved under its file's name."""
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == package
    ]
    found = {
        name
        for name in exported
        if inspect.isclass(getattr(module, name))
        and hasattr(getattr(module, name), "__match_args__")
    }
    # Words of a run, text of a split, an aligner, what a head says: results, not recipes.
    assert found - {"Lexicon", "Corpus", "Model1", "Distribution"} == set(
        public_names.COMPONENTS[package]
    )
    assert list(public_names.COMPONENTS[package]) == sorted(public_names.COMPONENTS[package])


@pytest.mark.parametrize(
    "name",
    [
        *("zoo.heads.sampled:SampledHead", "zoo.heads:Head", "zoo.lexicon:Lexicon", "zoo:Lexicon"),
        *("zoo.errors:UserError", "zoo.heads:Gone", "zoo.heads", "", ":", "zoo.heads:NCE.loss"),
        *("os:system", "subprocess:Popen", "dataclasses:dataclass", "zoo.sources.files:Part"),
    ],
)
def test_what_is_no_component_is_none(name):
    assert public_names.component(name) is None
    assert public_names.imported(name) is None
    with pytest.raises(UserError, match=f"has the component {name}, which"):
        recipes.from_json({"component": name})


def test_a_class_that_the_program_has_imported_needs_no_table():
    name = "tests.training.small:RandomWords"
    assert public_names.imported(name) is small.RandomWords
    assert public_names.imported("tests.training.small:_Messages") is None  # no dataclass
    assert public_names.imported("zoo.heads.sampled:SampledHead") is None  # zoo has a table
    assert SampledHead.__module__ == "zoo.heads.sampled"


def test_fields_that_are_no_part_of_a_recipe_are_not_read():
    recipe = {"component": "zoo.heads:SpreadUnknown", "lexicon": "words"}
    with pytest.raises(UserError, match="has no longer the fields lexicon"):
        recipes.from_json(recipe | {"head": recipes.to_json(Softmax())})
