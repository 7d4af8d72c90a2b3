"""Runs of one head are told apart by the fields in which their recipes differ."""

import json
import pathlib

from tests.lab.comparison.test_comparison import keep
from zoo.lab.comparison import seeds
from zoo.lab.comparison.text_report import tables
from zoo.lab.runs.seen_texts import KnowledgeText


def make_component(component, **fields):
    return {"component": f"zoo.priors:{component}", **fields}


def recipe(features, seed=0, background=None, epochs=8):
    """A recipe with the fields that matter here."""
    return {
        "component": "zoo:Experiment",
        "vocabulary": make_component("Vocabulary", features=features, background=background),
        "training": {"component": "zoo:Training", "epochs": epochs, "seed": seed},
        "parallel": {"component": "zoo:Parallel", "model": 1 + seed},
    }


TAGS = make_component(
    "Morphology", splits=["train"], guesser=make_component("SuffixGuesser", rare=10), kinds=[]
)
UNIGRAM = make_component("Unigram", splits=[], smoothing=0.5)


def test_only_fields_that_differ_are_shown():
    recipes = {
        "a": recipe([make_component("TopWords", count=25), TAGS], background=UNIGRAM),
        "b": recipe([make_component("TopWords", count=100)], seed=3),
        "c": recipe([make_component("TopWords", count=100)], seed=4),
    }
    assert seeds.compare_recipes(recipes, {}) == [
        "fields in which the runs differ:",
        "  vocabulary.features: (TopWords(count=25), Morphology(splits=train, "
        "guesser=SuffixGuesser(rare=10))) (a)",
        "  vocabulary.features: TopWords(count=100) (b; c)",
        "  vocabulary.background: Unigram(smoothing=0.5) (a)",
        "  vocabulary.background: none (b; c)",
    ]
    assert seeds.compare_recipes({name: recipes[name] for name in "bc"}, {}) == []
    assert seeds.compare_recipes({"a": recipes["a"]}, {}) == []


def test_components_of_one_class_are_compared_field_by_field():
    recipes = [recipe([], background={**UNIGRAM, "smoothing": 1}), recipe([], background=UNIGRAM)]
    assert [path for path, _ in seeds.differing_fields(recipes)] == [
        "vocabulary.background.smoothing"
    ]
    recipes.append(recipe([], epochs=4))
    assert [path for path, _ in seeds.differing_fields(recipes)] == [
        "vocabulary.background",
        "training.epochs",
    ]


def test_fields_that_older_recipes_lack_are_off():
    older, newer = (recipe([TAGS, make_component("TopWords", count=9)]) for _ in range(2))
    newer["training"] |= {"windows": None, "restart": 0.0, "frozen": []}
    assert [path for path, _ in seeds.differing_fields([older, newer])] == []
    newer["training"]["restart"] = 0.05
    assert seeds.compare_recipes({"older": older, "newer": newer}, {}) == [
        "fields in which the runs differ:",
        "  training.restart: none (older)",
        "  training.restart: 0.05 (newer)",
    ]


def test_many_recipes_are_counted_by_their_heads():
    heads = {name: "Softmax" if name < "d" else "NCE" for name in "abcdef"}
    recipes = {
        name: {
            **recipe([], epochs=9 if name == "f" else 8),
            "model": {"head": make_component(head)},
        }
        for name, head in heads.items()
    }
    assert seeds.compare_recipes(recipes, {}) == [
        "fields in which the runs differ:",
        "  training.epochs: 8 (5 recipes: 3 Softmax, 2 NCE)",
        "  training.epochs: 9 (f)",
        "  model.head: Softmax() (a; b; c)",
        "  model.head: NCE() (d; e; f)",
    ]


def test_what_all_of_many_runs_have_is_told_without_their_names(tmp_path):
    folders = [keep(tmp_path / name, {}) for name in "abcde"]
    lines = tables(folders).splitlines()
    assert "  priors that saw this text: none (all runs)" in lines
    assert "  priors that saw this text: none (a, b, c, d)" in tables(folders[:4])


def test_null_and_0_differ():
    """As in `last_dropout`, where null stands for another field's value."""
    with_null, with_zero = recipe([]), recipe([])
    with_null["training"] |= {"average_after": None}
    with_zero["training"] |= {"average_after": 0}
    assert [path for path, _ in seeds.differing_fields([with_null, with_zero])] == [
        "training.average_after"
    ]


def test_texts_that_gave_features_are_named_with_their_digests():
    recipes = {"a": recipe([]), "b": recipe([], seed=1)}
    gains = ("features: Morphology",)
    bank = KnowledgeText("bank.conllu", "0123456789", None, None, "this run", gains)
    assert seeds.compare_recipes(recipes, {"a": [bank], "b": None}) == [
        "fields in which the runs differ:",
        "  words, features and background from: bank.conllu [01234567]: features: Morphology (a)",
        "  words, features and background from: not recorded (b)",
    ]
    assert seeds.compare_recipes(recipes, {"a": [bank], "b": [bank]}) == []


def test_compare_names_the_head_alone_and_prints_the_differences(tmp_path):
    folders = []
    for name, features in {"words": [make_component("TopWords", count=9)], "tags": [TAGS]}.items():
        head = "LogLinear(tied=False, form='auto')"
        folders.append(keep(tmp_path / name, {"head": head}))
        text = json.dumps(recipe(features))
        pathlib.Path(folders[-1], "experiment.json").write_text(text, encoding="utf-8")
    lines = tables(folders).splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["LogLinear", "LogLinear"]
    assert "  vocabulary.features: TopWords(count=9) (words)" in lines
    assert not any("smoothing" in line or "epochs" in line for line in lines)


def test_fields_of_other_programs_may_have_dots_in_their_names():
    first, second = recipe([]), recipe([])
    first["training"] |= {"a.b": 1, "": 3}
    second["training"] |= {"a.b": 2}
    assert seeds.differing_fields([first, second]) == [
        ("training.a.b", [1, 2]),
        ("training.", [3, None]),
    ]
    assert seeds.compare_recipes({"one": first, "other": second}, {}) == [
        "fields in which the runs differ:",
        "  training.a.b: 1 (one)",
        "  training.a.b: 2 (other)",
        "  training.: 3 (one)",
        "  training.: none (other)",
    ]
