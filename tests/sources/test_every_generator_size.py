"""Sources that make text are refused what no memory holds, before they make any of it."""

import dataclasses
import tracemalloc

import pytest

from tests.lab.training import small
from zoo.base.arrays import memory
from zoo.data import Micro, Mixed
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.papers import Facts

HUGE = 10**12


def refusal(source, split):
    """The sentence that a source gets, which took next to no memory to be found out."""
    tracemalloc.start()
    try:
        with pytest.raises(UserError) as caught:
            source.read(split)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
    return str(caught.value)


@pytest.fixture
def eight_gigabytes(monkeypatch):
    monkeypatch.setattr(memory, "host_memory", lambda: 8 * 10**9)


@pytest.mark.parametrize(
    "field",
    [
        *("train_sentences", "validation_sentences", "test_sentences"),
        *("nouns", "adjectives", "verbs", "places"),
    ],
)
def test_the_micro_language(eight_gigabytes, field):
    message = refusal(Micro(**{field: HUGE}), "train")
    size = 160 if "sentences" in field else 200
    assert message == (
        f"data.{field}={HUGE} needs at least {HUGE * size:,} bytes ({size}.0 TB), and there are "
        "8,000,000,000 bytes (8.0 GB): give a smaller number, or a machine with more memory."
    )


@pytest.mark.parametrize("field", ["train_questions", "other_questions"])
def test_questions(eight_gigabytes, field):
    message = refusal(Facts("not read.tsv", **{field: HUGE}), "known")
    assert message.startswith(f"data.{field}={HUGE} needs at least {160 * HUGE:,} bytes (160.0 TB)")


def test_a_mixture(eight_gigabytes):
    mixed = Mixed(("one",), (Micro(train_sentences=9),), sentences=HUGE)
    message = refusal(mixed, "train")
    assert message.startswith(f"data.sentences={HUGE} needs at least {8 * HUGE:,} bytes (8.0 TB)")


def test_sentences_and_lemmas_take_what_is_said_of_them():
    source = Micro(nouns=40, adjectives=9, verbs=9, places=9, train_sentences=500)
    tracemalloc.start()
    try:
        source.read("validation")  # the language itself
        baseline = tracemalloc.get_traced_memory()[0]
        corpus = source.read("train")
        size = tracemalloc.get_traced_memory()[0] - baseline
    finally:
        tracemalloc.stop()
    assert 160 < size / len(corpus.sentences) < 1600


def test_marks_between_sentences(eight_gigabytes):
    recipe = small.experiment()
    vocabulary = dataclasses.replace(recipe.vocabulary, boundary_marks=HUGE)
    with pytest.raises(UserError, match=rf"^vocabulary.boundary_marks={HUGE} needs at least "):
        Experiment(recipe.data, vocabulary, recipe.model).build()
