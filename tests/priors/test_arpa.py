"""ARPA files against scores computed by hand."""

import dataclasses
import functools
import gzip
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lexicon import Lexicon, with_features
from zoo.priors import Arpa, arpa, backoff
from zoo.sources import files

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


def write_background(folder, text=TEXT, order=3):
    """The background of a file with this text."""
    (folder / "model.arpa").write_text(text, encoding="utf-8")
    return Arpa(str(folder / "model.arpa"), order=order)


def tables_of(background, lexicon=LEXICON):
    prepared = background.prepare(lexicon, {})
    return background.tables(dataclasses.replace(lexicon, background_tables=prepared))


def contexts_after(background, tables, ids):
    return background.apply(tables, jnp.asarray(ids), background.initial_carry(len(ids)))[0]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    background = write_background(tmp_path_factory.mktemp("arpa"))
    return background, tables_of(background)


@functools.partial(jax.jit, static_argnums=0)
def last_word(background, tables, before, word):
    """log p of a word after others, and of every word."""
    last = contexts_after(background, tables, before)[:, -1]
    return background.log_prob(tables, last, word), background.log_probs(tables, last)


@pytest.mark.parametrize(("words", "log10"), SCORES)
def test_scores_by_hand(tables, words, log10):
    background, tables = tables
    *before, word = (LEXICON.ids[word] for word in words.split())
    log_prob, log_probs = last_word(background, tables, jnp.asarray([before]), jnp.asarray([word]))
    np.testing.assert_allclose(log_prob, [log10 * np.log(10)], rtol=1e-5)
    np.testing.assert_allclose(log_probs[0, word], log10 * np.log(10), rtol=1e-5)


BAD = {
    "a word too few": ("-0.3\tle chat\t-0.25", "-0.3\tle", 17, "a 2-gram has 2 words"),
    "no number": ("-0.8\tdort\t-0.1", "many\tdort\t-0.1", 13, "does not begin with a number"),
    "above one": ("-0.5\tle\t-0.3", "0.5\tle\t-0.3", 11, "log10 of a probability is 0.5"),
    "a section too many": ("\\3-grams:", "\\4-grams:", 22, "out of order"),
    "twice": ("-0.4\tdort </s>", "-0.4\tle chat", 19, "'le chat' is there a second time"),
    "two unknown words": (
        *("-1.2\t<unk>\t0\n", "-1.2\t<unk>\t0\n-3\t<UNK>\n", 9),
        "'<unk>' is there a second time, as <unk> or <UNK>: keep one",
    ),
    "a no-break space": ("-1.1\tle dort", "-1.1\tle\u00a0dort", 20, "a 2-gram has 2 words"),
    "a count too high": ("ngram 3=2", "ngram 3=5", 22, "announces 5 3-grams and has 2"),
    "a section too few": ("ngram 3=2", "ngram 3=2\nngram 4=1", 6, "announces 1 4-grams and has 0"),
    "a great weight": ("\tle\t-0.3", "\tle\t300", 11, "of a weight 300"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named(case):
    good, bad, number, message = BAD[case]
    assert good in TEXT
    with pytest.raises(UserError, match=rf"model\.arpa, line {number}: .*{re.escape(message)}"):
        arpa.read(TEXT.replace(good, bad), "model.arpa")


def test_files_cut_short_are_refused(tmp_path):
    with pytest.raises(UserError, match="cut short"):
        arpa.read(TEXT.replace("\\end\\", ""), "model.arpa")
    with pytest.raises(UserError, match="announces 2 3-grams and has 1"):
        arpa.read(TEXT.replace("-0.1\t<s> le chat\n", ""), "model.arpa")
    for text in ("ngram\nle chat dort\n", "le chat\n", "ngram 1=3 are many\n\\1-grams:\n"):
        with pytest.raises(UserError, match=r"not an ARPA file: it has no line '\\data\\'"):
            arpa.read(text, "model.arpa")
    with pytest.raises(UserError, match="set order to 3 or less"):
        write_background(tmp_path, order=4).prepare(LEXICON, {})
    unigrams = "\\data\\\nngram 1=1\n\n\\1-grams:\n-1\t<unk>\n\\end\\\n"
    with pytest.raises(UserError, match=r"unigrams only: .*background=Unigram"):
        write_background(tmp_path, unigrams).prepare(LEXICON, {})


def without_unknown():
    return TEXT.replace("-1.2\t<unk>\t0\n", "").replace("ngram 1=6", "ngram 1=5")


def test_unknown_words_have_the_floor_of_kenlm_in_a_file_without_them(tmp_path, caplog):
    """SRILM writes such files by default, and QuickLM always."""
    background = write_background(tmp_path, without_unknown())
    tables = tables_of(background)
    ids = [[LEXICON.ids[word] for word in ["</s>", "le", "chat"]]]
    contexts = contexts_after(background, tables, ids)
    log_probs = jax.jit(background.log_probs)(tables, contexts[:, -1])
    log10_probs = np.asarray(log_probs[0]) / np.log(10)
    floor = -0.25 - 0.2 - 100 - np.log10(2)  # shared by <unk> and chien
    listed = [-0.25 - 0.2 - 0.9, -0.25 - 0.2 - 0.5, -0.25 - 0.2 - 0.6, -0.25 - 0.7]
    np.testing.assert_allclose(log10_probs, [floor, *listed, floor], rtol=1e-5)
    (message,) = caplog.messages
    assert message == (
        f"{tmp_path}/model.arpa has no <unk>: words of the lexicon that it does not have "
        "(2: '<unk>', 'chien') share log10 p = -100, as in KenLM"
    )


def test_the_boundary_has_no_floor(tmp_path):
    text = without_unknown().replace("-0.9\t</s>\n", "").replace("ngram 1=5", "ngram 1=4")
    with pytest.raises(UserError, match=r"neither </s>, .* nor <unk>: .*vocabulary\.boundary=none"):
        write_background(tmp_path, text).prepare(LEXICON, {})


def test_the_unknown_word_as_srilm_writes_it_and_a_compressed_file(tmp_path):
    as_srilm = TEXT.replace("<unk>", "<UNK>").encode()
    (tmp_path / "model.arpa.gz").write_bytes(gzip.compress(as_srilm))
    expected = write_background(tmp_path).prepare(LEXICON, {})
    tables = Arpa(str(tmp_path / "model.arpa.gz")).prepare(LEXICON, {})
    assert tables.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(tables[name], array)
    (tmp_path / "model.arpa.gz").write_bytes(gzip.compress(as_srilm)[:-20])
    with pytest.raises(UserError, match=r"model\.arpa\.gz cannot be decompressed"):
        Arpa(str(tmp_path / "model.arpa.gz")).prepare(LEXICON, {})


def test_the_unknown_word_is_the_lexicons_own(tmp_path):
    """N-grams with <unk> are of it, too, whatever its spelling."""
    text = (
        "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-99\t<s>\t-0.3\n-0.5\t</s>\n"
        "-0.4\t<unk>\t-0.2\n-0.6\tle\t-0.1\n\n\\2-grams:\n-0.05\tle <unk>\n"
        "-0.7\t<unk> le\n\\end\\\n"
    )
    tables_by_mark = [
        write_background(tmp_path, text, order=2).prepare(
            Lexicon((unknown, "</s>", "le"), np.ones(3, int), unknown=unknown, boundary="</s>"), {}
        )
        for unknown in ("<unk>", "[UNK]")
    ]
    for name, array in tables_by_mark[0].items():
        np.testing.assert_array_equal(tables_by_mark[1][name], array)
    assert any(np.isclose(array, -0.05 * np.log(10)).any() for array in tables_by_mark[1].values())


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u0085", "\u2028"])
def test_words_end_at_spaces_and_tabs_alone(space):
    word = f"1{space}000"
    text = TEXT.replace("-0.6\tchat\t-0.2", f" -0.6 \t{word}\r").replace("chat", word)
    levels = arpa.read(files.with_line_feeds(text), "model.arpa")
    assert levels[0][(word,)] == (-0.6, 0)
    assert levels[2]["<s>", "le", word] == (-0.1, 0)


# Bigrams far less probable than what they back off to: a unigram times 0.97 or 0.6.
LOW = """
\\data\\
ngram 1=7
ngram 2=6

\\1-grams:
-3\t<unk>
-99\t<s>\t-0.1
-0.9\t</s>
-0.3\tle\t-0.013
-0.6\tchat\t-0.2
-0.8\tdort\t-0.0137
-99\tzut

\\2-grams:
-99\tle chat
-8\tle dort
-inf\tdort chat
-99\tdort le
-20\tchat le
-4\tchat </s>

\\end\\
"""
OF_LOW = ("<unk>", "</s>", "le", "chat", "dort")
# log10 b(x | c) of these words.
LISTED = {
    "</s>": [-3.1, -1.0, -0.4, -0.7, -0.9],  # the weight of <s>
    "le": [-3.013, -0.913, -0.313, -99, -8],
    "chat": [-3.2, -4, -20, -0.8, -1.0],
    "dort": [-3.0137, -0.9137, -99, -99, -0.8137],
}
# Signatures with one word, and with two of which a context lists none, one or both.
OF_SIGNATURES = {
    "each its own": [{f"Word:{word}": 1.0} for word in OF_LOW],
    "two in one": [{"a": 1.0}, {"b": 1.0}, {"c": 1.0}, {"d": 1.0}, {"d": 1.0}],
    "pairs": [{"a": 1.0}, {"b": 1.0}, {"c": 1.0}, {"c": 1.0}, {"b": 1.0}],
}


@pytest.mark.parametrize(
    ("features", "dense"),
    [
        ("each its own", 0.001),
        ("pairs", 16),
        pytest.param("each its own", 16, marks=pytest.mark.slow),
        pytest.param("pairs", 0.001, marks=pytest.mark.slow),
        pytest.param("two in one", 16, marks=pytest.mark.slow),
        pytest.param("two in one", 0.001, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_words_far_below_what_they_back_off_to(features, dense, monkeypatch, tmp_path):
    """As dense rows and in windows: the listed value comes back, and p is normalised."""
    monkeypatch.setattr(backoff, "DENSE", dense)
    words = Lexicon(words=OF_LOW, counts=np.ones(5, int), unknown="<unk>", boundary="</s>")
    lexicon = with_features(words, OF_SIGNATURES[features])
    background = write_background(tmp_path, LOW, order=2)
    prepared = background.prepare(lexicon, {})
    lexicon = dataclasses.replace(lexicon, background_tables=prepared)
    tables = background.tables(lexicon)
    before = [[lexicon.ids[word]] for word in LISTED]
    contexts = contexts_after(background, tables, before)[:, -1]
    expected = np.array(list(LISTED.values())) * np.log(10)
    log_probs = background.log_probs(tables, contexts)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6)
    for word in range(5):
        result = background.log_prob(tables, contexts, jnp.full(4, word))
        np.testing.assert_allclose(result, expected[:, word], rtol=1e-6)

    signature, members = lexicon.signatures
    masses = np.zeros((4, len(members)))
    np.add.at(masses, (slice(None), signature), np.exp(expected))
    result = background.log_masses(tables, contexts, signature, len(members))
    np.testing.assert_allclose(result, np.log(masses), rtol=2e-6, atol=1e-6)

    head = LogLinear(background=background)
    params = head.init(jax.random.key(0), 3, lexicon)
    hidden, head_tables = jnp.ones((4, 3)), head.tables(lexicon)
    probabilities = np.exp(head.log_probs(params, head_tables, hidden, context=contexts))
    np.testing.assert_allclose(probabilities.sum(-1), np.ones(4), rtol=1e-6)

    def loss(params):
        targets, weights = jnp.asarray([1, 3, 2, 2]), jnp.ones(4)
        return head.weighted_loss(params, head_tables, hidden, targets, weights, context=contexts)

    value, gradients = jax.value_and_grad(loss)(params)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


def test_words_without_mass_are_refused(tmp_path):
    lexicon = Lexicon((*OF_LOW, "zut"), np.ones(6, int), unknown="<unk>", boundary="</s>")
    with pytest.raises(UserError, match=r"model\.arpa gives no mass .* to 'zut'"):
        write_background(tmp_path, LOW, order=2).prepare(lexicon, {})
    background = write_background(tmp_path, LOW.replace("-3\t<unk>", "-99\t<unk>"), order=2)
    lexicon = Lexicon(("</s>", "le", "loup"), np.ones(3, int), boundary="</s>")
    with pytest.raises(UserError, match=r"log10 p\(<unk>\) is -99.0\) to 'loup'"):
        background.prepare(lexicon, {})


@pytest.mark.slow
def test_a_model_of_which_no_long_n_gram_is_in_the_lexicon(tmp_path):
    background = write_background(tmp_path, LOW, order=2)
    tables = tables_of(background, Lexicon(("<unk>", "chien"), np.ones(2, int), unknown="<unk>"))
    contexts = contexts_after(background, tables, [[1, 0]])
    expected = np.full((1, 2), np.log(0.0005))
    log_probs = background.log_prob(tables, contexts, jnp.asarray([[0, 1]]))
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6)
    log_probs = background.log_probs(tables, contexts)[..., 1]
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6)


@pytest.mark.parametrize("mark", ["<unk>", "<UNK>"])
def test_sentences_are_scored_as_kenlm_does(tmp_path, mark):
    """log10 p by hand, and by the package kenlm, which gives the same."""
    (tmp_path / "model.arpa").write_text(TEXT.replace("<unk>", mark))
    scorer = arpa.SentenceScorer(str(tmp_path / "model.arpa"))
    texts = {
        "le chat dort": -0.2 - 0.1 + (-0.25 - 0.7) - 0.35,
        "chat": (-0.4 - 0.6) + (-0.2 - 0.9),
        "le chien le": -0.2 + (-0.15 - 0.3 - 1.2) - 0.5 + (-0.3 - 0.9),  # <unk> has the weight 1
        "": -0.4 - 0.9,
        "le dort le dort": -0.2 + (-0.15 - 1.1) + (-0.1 - 0.5) - 1.1 - 0.4,
    }
    log_probs, words, unknown = scorer.score(texts)
    np.testing.assert_allclose(log_probs, np.array([*texts.values()]) * np.log(10), rtol=1e-12)
    assert words.tolist() == [3, 1, 3, 0, 4] and unknown.tolist() == [0, 0, 1, 0, 0]


def test_an_unknown_word_without_a_mark_has_the_least_probability(tmp_path):
    text = TEXT.replace("ngram 1=6", "ngram 1=5").replace("-1.2\t<unk>\t0\n", "")
    (tmp_path / "model.arpa").write_text(text)
    (score,), *_ = arpa.SentenceScorer(str(tmp_path / "model.arpa")).score(["chien"])
    assert score == pytest.approx((-0.4 - 100 - 0.9) * np.log(10))
