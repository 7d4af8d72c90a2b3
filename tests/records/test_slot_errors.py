"""Names in realisations: which are missing, which have no evidence."""

import dataclasses
import re

import pytest

from records import slot_errors
from tests.lab.training import small
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.evaluation import exact_match
from zoo.lab.evaluation.run import Run
from zoo.lab.papers import Realisations
from zoo.priors import Evidence, TopWords

NAMES = {"Mill", "The Mill", "Café Roma", "Zizzi"}
MEANING = "name[The Mill], food[near], near[Café Roma]"
TEXTS = {
    "The Mill is near Café Roma.": ([], []),
    "The Mill is near the river": (["Café Roma"], []),
    "Zizzi, near Zizzi and Café Roma": (["The Mill"], ["Zizzi"]),
    "Mill is near Café Romana": (["The Mill", "Café Roma"], ["Mill"]),
    "The Mill and the other Mill, Café Roma": ([], ["Mill"]),
    "The Milling Café Roma": (["The Mill"], []),
}


@pytest.mark.parametrize("text", TEXTS)
def test_errors_of_a_text(text):
    assert slot_errors.errors(MEANING, text, NAMES) == TEXTS[text]


def test_names_of_a_meaning():
    assert slot_errors.names_of(MEANING) == ["The Mill", "Café Roma"]
    assert slot_errors.names_of("surname[x], near[y]") == ["y"]


ROWS = """mr,ref
"name[Al], near[Bo]",Al is near Bo
"name[Al], near[Bo]","Near Bo, Al"
name[Cy],Cy it is
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model of a few steps over the background."""
    folder = tmp_path_factory.mktemp("slots")
    path = folder / "pairs.csv"
    path.write_text(ROWS, encoding="utf-8")
    head = LogLinear(background=Evidence(minimum_count=1, longest=32))
    recipe = small.experiment(
        model=dataclasses.replace(small.MODEL, head=head),
        vocabulary=Vocabulary(unknown="refused", features=(TopWords(99, ("train",)),)),
        state="sentences",
        length=30,
        epochs=1,
    )
    recipe = dataclasses.replace(recipe, data=Realisations(str(path), str(path), (str(path),)))
    return Run.load(small.run_in(folder / "run", recipe))


@pytest.mark.slow
def test_each_condition_is_realised_once(run, monkeypatch):
    realisations = ["Bo and Al", "Al"]
    conditions = []

    def answer(run, corpus, length, temperature, seed):
        conditions.extend("".join(sentence) for sentence in corpus.sentences)
        return [([*text], text == "Al") for text in realisations]

    monkeypatch.setattr(exact_match, "answer", answer)
    passport, scores = slot_errors.judge(run, "test")
    figures = passport.figures
    assert conditions == ["name[Al], near[Bo]|Al is near Bo", "name[Cy]|Cy it is"]
    assert figures.details.pop("examples") == ["name[Al], near[Bo] -> Bo and Al", "name[Cy] -> Al"]
    low, high = figures.interval
    assert 0 < low < 0.5 < high < 1
    assert scores["right"].tolist() == [1, 0]
    assert (figures.accuracy, figures.right) == (0.5, 1)
    assert figures.details == {
        "temperature": 0.5,
        "seed": 0,
        "texts": 2,
        "complete": 1,
        "slots": 3,
        "slots_by_slot": {"name": 2, "near": 1},
        "missing": 1,
        "missing_by_slot": {"name": 1, "near": 0},
        "wrong": 1,
        "slot_error_rate": 2 / 3,
    }


@pytest.mark.slow
def test_from_a_model_to_its_passport(run):
    passport, _ = slot_errors.judge(run, "test", length=12)
    details = passport.figures.details
    assert details["texts"] == 2
    assert all(len(text.partition(" -> ")[2]) <= 12 for text in details["examples"])
    assert "(3 names in 2 conditions: " in slot_errors.describe(passport)
    assert re.search(r"left out \(name \d of 2, near \d of 1\), ", slot_errors.describe(passport))


@pytest.mark.slow
def test_texts_without_conditions_are_refused(run):
    corpus = dataclasses.replace(run.read("test"), prefixes=None)
    with pytest.raises(UserError, match="has none"):
        slot_errors.conditions(corpus)
