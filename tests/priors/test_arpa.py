"""ARPA files against scores computed by hand, and against KenLM's where it is installed."""

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pytest

from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors import Arpa, arpa

TEXT = """
\\data\\
ngram 1=6
ngram 2=5
ngram 3=2

\\1-grams:
-1.2\t<unk>\t0
0\t<s>\t-0.4
-0.9\t</s>
-0.5\tle\t-0.3
-0.6\tchat\t-0.2
-0.8\tdort\t-0.1

\\2-grams:
-0.2\t<s> le\t-0.15
-0.3\tle chat\t-0.25
-0.7\tchat dort\t-0.05
-0.4\tdort </s>
-1.1\tle dort

\\3-grams:
-0.1\t<s> le chat
-0.35\tchat dort </s>

\\end\\
"""
WORDS = ("<unk>", "</s>", "le", "chat", "dort", "chien")
LEXICON = Lexicon(words=WORDS, counts=np.ones(6, int), unknown="<unk>", boundary="</s>")
# log10 p of each word after those before it; <unk> and chien share the probability of <unk>.
SHARED = -1.2 - np.log10(2)
SCORES = [
    ("</s> le", -0.2),  # <s> le
    ("</s> chat", -0.4 - 0.6),  # backoff(<s>) chat
    ("</s> le chat", -0.1),  # <s> le chat
    ("</s> le dort", -0.15 - 1.1),  # backoff(<s> le) le dort
    ("</s> le </s>", -0.15 - 0.3 - 0.9),  # backoff(<s> le) backoff(le) </s>
    ("le chat dort", -0.25 - 0.7),
    ("le chat le", -0.25 - 0.2 - 0.5),
    ("chat dort </s>", -0.35),
    ("le dort </s>", -0.4),  # le dort has no weight: it is no context
    ("le dort le", -0.1 - 0.5),
    ("le chat dort </s>", -0.35),
    ("le </s> chat", -0.4 - 0.6),  # nothing reaches over a boundary
    ("le chien", -0.3 + SHARED),
    ("le chien chat", -0.6),  # nothing is known after chien
    ("le chat <unk>", -0.25 - 0.2 + SHARED),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    path = tmp_path_factory.mktemp("arpa") / "model.arpa"
    path.write_text(TEXT, encoding="utf-8")
    background = Arpa(str(path), order=3)
    lexicon = dataclasses.replace(LEXICON, background_tables=background.prepare(LEXICON, {}))
    return background, background.tables(lexicon)


@pytest.mark.parametrize(("words", "log10"), SCORES)
def test_scores_by_hand(tables, words, log10):
    background, tables = tables
    *before, word = (LEXICON.ids[word] for word in words.split())
    contexts, _ = background.apply(tables, jnp.asarray([before]), background.initial_carry(1))
    last = contexts[:, -1]
    found = background.log_prob(tables, last, jnp.asarray([word]))
    np.testing.assert_allclose(found, [log10 * np.log(10)], rtol=1e-5)
    found = background.log_probs(tables, last)[0, word]
    np.testing.assert_allclose(found, log10 * np.log(10), rtol=1e-5)


def test_the_scores_are_those_of_kenlm(tables, tmp_path):
    kenlm = pytest.importorskip("kenlm")
    (tmp_path / "model.arpa").write_text(TEXT, encoding="utf-8")
    model = kenlm.Model(str(tmp_path / "model.arpa"))
    background, tables = tables
    for sentence in ("le chat dort", "chat le chat", "dort", "le dort le chat"):
        ids = [LEXICON.ids[word] for word in ["</s>", *sentence.split(), "</s>"]]
        contexts, _ = background.apply(tables, jnp.asarray([ids[:-1]]), background.initial_carry(1))
        found = background.log_prob(tables, contexts, jnp.asarray([ids[1:]])) / np.log(10)
        expected = [score for score, _, _ in model.full_scores(sentence)]
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)


BAD = {
    "a word too few": ("-0.3\tle chat\t-0.25", "-0.3\tle", 17, "a 2-gram has 2 words"),
    "no number": ("-0.8\tdort\t-0.1", "many\tdort\t-0.1", 13, "does not begin with a number"),
    "above one": ("-0.5\tle\t-0.3", "0.5\tle\t-0.3", 11, "log10 of a probability is 0.5"),
    "a section too many": ("\\3-grams:", "\\4-grams:", 22, "out of order"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named(case):
    good, bad, number, what = BAD[case]
    assert good in TEXT
    with pytest.raises(UserError, match=rf"model\.arpa, line {number}: .*{re.escape(what)}"):
        arpa.read(TEXT.replace(good, bad), "model.arpa")


def test_files_cut_short_are_refused(tmp_path):
    with pytest.raises(UserError, match="cut short"):
        arpa.read(TEXT.replace("\\end\\", ""), "model.arpa")
    with pytest.raises(UserError, match="announces 2 3-grams and has 1"):
        arpa.read(TEXT.replace("-0.1\t<s> le chat\n", ""), "model.arpa")
    (tmp_path / "model.arpa").write_text(TEXT, encoding="utf-8")
    with pytest.raises(UserError, match="set order to 3 or less"):
        Arpa(str(tmp_path / "model.arpa"), order=4).prepare(LEXICON, {})


def test_a_word_that_the_file_cannot_predict(tmp_path):
    text = TEXT.replace("-1.2\t<unk>\t0\n", "").replace("ngram 1=6", "ngram 1=5")
    (tmp_path / "model.arpa").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="neither '<unk>', which is in the lexicon, nor <unk>"):
        Arpa(str(tmp_path / "model.arpa")).prepare(LEXICON, {})
