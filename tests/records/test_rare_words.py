"""Rare numbers and names, each in its context, of a text of a few lines."""

import dataclasses

import jax
import numpy as np
import pytest

from records import rare_words
from tests.lab.training import small
from zoo.data import Corpus, Text
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.lab.evaluation.run import Run
from zoo.lexicon import Lexicon

COUNTS = {"the": 50, "in": 40, "37": 0, "1,200.5": 2, "42": 30, "Lyon": 0, "Paris": 3, "Zürich": 2}
COUNTS |= {"The": 9, "Bill": 1, "bill": 4, "IBM": 1, "I": 8, "3rd": 1, "O'Neill": 1, "</s>": 60}
LEXICON = Lexicon(tuple(COUNTS), np.array([*COUNTS.values()]), boundary="</s>")


def corpus(*lines):
    return Corpus("lines", [line.split() for line in lines])


def test_numbers_and_names_by_their_spelling():
    ids_by_kind = rare_words.kinds(LEXICON)
    words_by_kind = {
        kind: {LEXICON.words[word_id] for word_id in ids_by_kind[kind]} for kind in ids_by_kind
    }
    # "The" and "Bill" have twins in lower case, the others other characters than letters.
    assert words_by_kind == {"number": {"37", "1,200.5", "42"}, "name": {"Lyon", "Paris", "Zürich"}}


def test_each_rare_word_has_a_word_of_the_other_kind_that_is_as_frequent():
    text = corpus("in Lyon the 37 Nice", "Paris the 1,200.5 in 42 Paris")
    assert rare_words.examples(text, LEXICON) == [
        ("number", "never", ["in", "Lyon", "the"], "37", "Lyon"),
        ("number", "1-3", ["Paris", "the"], "1,200.5", "Zürich"),
        # Neither the first word of a sentence nor 42, which is not rare.
        ("name", "never", ["in"], "Lyon", "37"),
        ("name", "1-3", ["Paris", "the", "1,200.5", "in", "42"], "Paris", "1,200.5"),
    ]


def test_of_many_as_many_are_drawn_as_asked_for():
    text = corpus(*(["in Lyon"] * 30 + ["the 37 in 37"] * 30))
    cases = rare_words.examples(text, LEXICON, limit=7)
    assert [example[:2] for example in cases] == [("number", "never")] * 7 + [("name", "never")] * 7
    assert rare_words.examples(text, LEXICON, limit=7) == cases


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model that has seen a little, of words some of which stand in the test alone."""
    folder = tmp_path_factory.mktemp("rare")
    (folder / "train.txt").write_text("it cost 12 in Rome .\nit cost 14 in Oslo .\n" * 4, "utf-8")
    (folder / "test.txt").write_text("it cost 37 in Lyon .\nin Lyon it cost 37 .\n", "utf-8")
    path = str(folder / "train.txt")
    recipe = dataclasses.replace(
        small.experiment(vocabulary=Vocabulary(splits=()), state="sentences", epochs=1),
        data=Text(train=path, validation=path, tests=(str(folder / "test.txt"),)),
    )
    return Run.load(small.run_in(folder / "run", recipe))


def log_probs(run, sentence):
    """log p of every word after a sentence, the slow way."""
    model, lexicon = run.experiment.model, run.lexicon
    ids = np.array([[lexicon.ids[word] for word in ["</s>", *sentence]]])
    states = jax.jit(model.states)
    hidden, _, _ = states(run.params, run.tables, ids, model.initial_carry(1))
    return jax.jit(model.head.log_probs)(run.params["head"], run.tables["head"], hidden[0, -1])


@pytest.mark.slow
def test_figures_are_of_the_word_alone(run):
    passport, _ = rare_words.judge(run, "test")
    ids = run.lexicon.ids
    after = [log_probs(run, words) for words in (["it", "cost"], ["in", "Lyon", "it", "cost"])]
    expected = np.mean([[p[ids["37"]], p[ids["Lyon"]]] for p in after], axis=0)
    case = passport.figures.cases["number, never"]
    assert case.pairs == 2
    details = case.details["log_prob"], case.details["log_prob_of_other"]
    np.testing.assert_allclose(details, expected, rtol=1e-4)
    assert case.accuracy == np.mean([p[ids["37"]] > p[ids["Lyon"]] for p in after])
    assert passport.figures.cases.keys() == {"number, never", "name, never"}
    assert passport.tokens == 4
    assert "number, never " in rare_words.describe(passport)


def test_text_without_rare_words_is_refused(run, monkeypatch):
    monkeypatch.setattr(rare_words, "BANDS", {"often": (100, 200)})
    with pytest.raises(UserError, match="has no rare number"):
        rare_words.judge(run, "test")
