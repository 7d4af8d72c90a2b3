"""Names of recipes, made from the names of their runs."""

import json

import pytest

from tests.lab.comparison.test_comparison import keep
from zoo.errors import UserError
from zoo.lab.comparison import seeds
from zoo.lab.comparison.comparison import Comparison
from zoo.lab.comparison.text_report import tables


@pytest.mark.parametrize(
    ("runs", "name"),
    [
        (("softmax_0", "softmax_1", "softmax_10"), "softmax, 3 seeds"),
        (("ll16_d05", "ll16_d05_1"), "ll16_d05, 2 seeds"),  # the first has the default seed
        (("a0", "a1"), "a, 2 seeds"),
        (("x-seed3", "x-seed4"), "x, 2 seeds"),
        (("runs/nce/0", "runs/nce/1"), "runs/nce, 2 seeds"),
        (("here_0", "there_1"), "here, 2 seeds"),
        (("0", "1"), "0, 2 seeds"),
        (("softmax_0",), "softmax_0"),
    ],
)
def test_a_recipe_is_named_by_what_its_runs_share(runs, name):
    assert seeds.name_groups([runs]) == [name]


def test_runs_of_changed_code_are_no_seeds_of_one_recipe(tmp_path):
    def run(name, seed, digest, head="my_heads:Gated"):
        training = {"seed": seed, "recipe_but_seed": "r"}
        made_with = {"sources": {"my_heads": digest * 64}}
        folder = keep(tmp_path / name, {"training": {**training, "made_with": made_with}})
        recipe = {"model": {"head": {"component": head}}, "training": {"seed": seed}}
        (tmp_path / name / "experiment.json").write_text(json.dumps(recipe))
        return folder

    folders = [run("a_0", 0, "1"), run("a_1", 1, "1"), run("a_2", 2, "2")]
    assert [group.runs for group in Comparison.from_paths(folders).groups] == [
        ("a_0", "a_1"),
        ("a_2",),
    ]
    text = tables(folders)
    assert "  source: my_heads [11111111] (a, 2 seeds)" in text
    assert "  source: my_heads [22222222] (a_2)" in text


def test_seeds_of_an_older_recipe_lack_fields_that_are_off(tmp_path):
    """A field of a later revision, and one within it, is empty; another value is another recipe."""
    folders = []
    later_fields = {}, {"subwords": None, "left_out": {"counts": 0}}, {"subwords": 8}
    for seed, later in enumerate(later_fields):
        folders.append(keep(tmp_path / f"a_{seed}", {"training": {"seed": seed}}))
        recipe = {"vocabulary": {"minimum_count": 2, **later}, "training": {"seed": seed}}
        (tmp_path / f"a_{seed}" / "experiment.json").write_text(json.dumps(recipe))
    groups = Comparison.from_paths(folders).groups
    assert [group.runs for group in groups] == [("a_0", "a_1"), ("a_2",)]


def test_two_recipes_never_share_a_name():
    groups = [("a_0", "a_1"), ("a_2", "a_3"), ("b_0", "b_1")]
    assert seeds.name_groups(groups) == ["a_0, 2 seeds", "a_2, 2 seeds", "b, 2 seeds"]


def test_labels_replace_names():
    groups = [("a_0", "a_1"), ("b",)]
    label_by_run = seeds.label_runs(groups, ["one", "two"])
    assert label_by_run == {"a_0": "one_0", "a_1": "one_1", "b": "two"}
    for labels in (["one"], ["one", "one"], ["one", "one_1"]):
        with pytest.raises(UserError, match=r"--label is given . times for . recipes"):
            seeds.label_runs(groups, labels)


def test_a_head_has_its_number_in_every_picture():
    """A second recipe of the head, and a head that is not known, have the numbers left free."""
    heads = {"log": "zoo.heads:LogLinear", "tied": "zoo.heads:Softmax", "own": "mine:Head"}
    assert seeds.number_recipes([*heads], [*heads.values()]) == [1, 0, 2]
    log_heads = {"log": "zoo.heads:LogLinear", "a log": "zoo.heads:LogLinear", "b": ""}
    assert seeds.number_recipes([*log_heads], [*log_heads.values()]) == [2, 1, 0]


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        ({"model": 3}, "model is 3, where an object should be"),
        ({"model": {"head": "Softmax"}}, 'model.head is "Softmax", where an object should be'),
        ({"model": {"head": {"component": []}}}, "model.head.component is a list, where text"),
        ({"training": "long"}, 'training is "long", where an object should be'),
        ({"training": {"seed": [1]}}, "training.seed is a list, where a whole number should be"),
        ({"data": {"component": 1}}, "data.component is 1, where text should be"),
    ],
)
def test_a_recipe_of_other_types_is_refused(tmp_path, recipe, reason):
    folder = keep(tmp_path / "a")
    (tmp_path / "a" / "experiment.json").write_text(json.dumps(recipe))
    with pytest.raises(UserError, match=rf"a has a recipe that cannot be read \({reason}"):
        tables([folder])


def test_a_recipe_may_lack_its_parts(tmp_path):
    folder = keep(tmp_path / "a")
    for recipe in ({"model": None, "training": None}, {"model": {"head": None}, "data": None}):
        (tmp_path / "a" / "experiment.json").write_text(json.dumps(recipe))
        assert tables([folder])
