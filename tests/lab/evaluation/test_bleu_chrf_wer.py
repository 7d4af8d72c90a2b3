"""Statistics and figures against sacrebleu, by hand, and against loops."""

import importlib
import sys
import urllib.error

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from zoo.errors import UserError
from zoo.lab.evaluation import bleu_chrf_wer

# Empty ones, repeated words, one shorter than the order, one equal, one with marks.
HYPOTHESES = [
    "the cat the cat on the mat",
    "",
    "cat",
    "the cat sat on the mat .",
    "the big cat sat on a mat , yes !",
]
REFERENCES = ["the cat sat on the mat .", "a cat was on the mat ."]


@pytest.mark.parametrize("references", [REFERENCES[:1], REFERENCES])
@pytest.mark.parametrize("tokenize", ["none", "13a", "char"])
def test_bleu_is_sacrebleus(references, tokenize):
    metric, official = bleu_chrf_wer.Bleu(tokenize), BLEU(tokenize=tokenize, force=True)
    statistics = metric.statistics(HYPOTHESES, references)
    for hypothesis, row in zip(HYPOTHESES, statistics, strict=True):
        expected = official.corpus_score([hypothesis], [[text] for text in references])
        assert metric.figure(row) == pytest.approx(expected.score, abs=1e-9)
        assert row[:2].tolist() == [expected.sys_len, expected.ref_len]
        assert row[2:].tolist() == [*expected.counts, *expected.totals]
    corpus_score = official.corpus_score(
        HYPOTHESES, [[text] * len(HYPOTHESES) for text in references]
    )
    assert metric.figure(statistics.sum(0)) == pytest.approx(corpus_score.score, abs=1e-9)
    assert metric.signature().startswith("nrefs:1|case:mixed|eff:no|tok:")


@pytest.mark.parametrize("tokenize", ["zh", "intl", "char"])
def test_bleu_of_text_that_sacrebleu_splits_is_sacrebleus(tokenize):
    hypotheses, reference = ["我的手真痛。", "3.5毫米,好!", "«ça» va\u2028bien…"], "我的手很痛,好!"
    official = BLEU(tokenize=tokenize, force=True)
    statistics = bleu_chrf_wer.Bleu(tokenize).statistics(hypotheses, [reference])
    for hypothesis, row in zip(hypotheses, statistics, strict=True):
        expected = official.corpus_score([hypothesis], [[reference]])
        assert row[:2].tolist() == [expected.sys_len, expected.ref_len]
        assert row[2:].tolist() == [*expected.counts, *expected.totals]


@pytest.mark.parametrize("references", [REFERENCES[:1], REFERENCES, ["cat"], ["", "cats"]])
def test_chrf_is_sacrebleus(references):
    metric, official = bleu_chrf_wer.ChrF(), CHRF()
    statistics = metric.statistics(HYPOTHESES, references)
    for hypothesis, row in zip(HYPOTHESES, statistics, strict=True):
        expected = official.corpus_score([hypothesis], [[text] for text in references])
        assert metric.figure(row) == pytest.approx(expected.score, abs=1e-9)
    corpus_score = official.corpus_score(
        HYPOTHESES, [[text] * len(HYPOTHESES) for text in references]
    )
    assert metric.figure(statistics.sum(0)) == pytest.approx(corpus_score.score, abs=1e-9)


def test_chrf_of_a_corpus_is_sacrebleus():
    """Where a reference is shorter than an order, the hypothesis has no n-grams of it, either."""
    references = ["cat", "the cat", "a cat", REFERENCES[0], REFERENCES[1]]
    metric = bleu_chrf_wer.ChrF()
    rows = [metric.statistics([x], [y])[0] for x, y in zip(HYPOTHESES, references, strict=True)]
    expected = CHRF().corpus_score(HYPOTHESES, [references]).score
    assert metric.figure(np.sum(rows, 0)) == pytest.approx(expected, abs=1e-9)


def edits(hypothesis, reference):
    """The fewest edits, by a table cell by cell (Levenshtein 1966)."""
    table = {}
    for i in range(len(hypothesis) + 1):
        for j in range(len(reference) + 1):
            candidates = [i + j] if not i * j else []
            if i and j:
                candidates += [table[i - 1, j - 1] + (hypothesis[i - 1] != reference[j - 1])]
                candidates += [table[i - 1, j] + 1, table[i, j - 1] + 1]
            table[i, j] = min(candidates)
    return table[len(hypothesis), len(reference)]


def test_word_errors_by_hand_and_by_a_table():
    def errors(hypotheses, reference):
        metric = bleu_chrf_wer.WordErrorRate()
        rows = metric.statistics([*map(" ".join, hypotheses)], (" ".join(reference),))
        assert (rows[:, 3] == len(reference)).all()
        return rows[:, :3]

    counts = errors([[*"abcd"], [*"axd"], [*"xabcdy"], []], [*"abcd"])
    assert counts.tolist() == [[0, 0, 0], [1, 0, 1], [0, 2, 0], [0, 0, 4]]
    assert errors([[*"ab"], []], []).tolist() == [[0, 2, 0], [0, 0, 0]]
    assert errors([], [*"ab"]).shape == (0, 3)
    generator = np.random.default_rng(0)
    for _ in range(30):
        reference, *hypotheses = (
            [*map(str, generator.integers(0, 4, generator.integers(0, 9)))] for _ in range(6)
        )
        for words, (substituted, inserted, deleted) in zip(
            hypotheses, errors(hypotheses, reference), strict=True
        ):
            assert substituted + inserted + deleted == edits(words, reference)
            assert inserted - deleted == len(words) - len(reference)


def test_word_error_rate():
    metric = bleu_chrf_wer.WordErrorRate()
    statistics = metric.statistics(["a b", "a x c d"], ["a b c d"])
    assert statistics.tolist() == [[0, 0, 2, 4], [1, 0, 0, 4]]
    assert metric.figure(statistics).tolist() == [50, 25]
    assert metric.figure(statistics.sum(0)) == pytest.approx(37.5)
    assert metric.gain(statistics, np.ones(4)).tolist() == [-2, -1]
    assert metric.figure(np.array([0.0, 1, 0, 0])) == np.inf


def test_gains_are_of_sentences_among_others():
    metric = bleu_chrf_wer.Bleu()
    statistics = metric.statistics(HYPOTHESES, REFERENCES)
    background = statistics[3] * 10
    expected = [(background + row)[1] * metric.figure(background + row) / 100 for row in statistics]
    np.testing.assert_allclose(metric.gain(statistics, background), expected)
    assert metric.gain(statistics, background).argmax() == 3


def test_a_tokeniser_that_there_is_not():
    with pytest.raises(UserError, match=r"--tokenize spaces: give one of .*13a"):
        bleu_chrf_wer.Bleu("spaces")


# sacrebleu warns of the name spm by a deprecated function.
@pytest.mark.filterwarnings("ignore:The 'warn' method:DeprecationWarning")
@pytest.mark.parametrize(
    ("tokenize", "package"),
    [
        ("ja-mecab", r"'sacrebleu\[ja\]'"),
        ("ko-mecab", r"'sacrebleu\[ko\]'"),
        *((name, "sentencepiece") for name in ("spm", "flores101", "flores200", "spBLEU-1K")),
    ],
)
def test_a_tokenizer_without_its_package_names_the_command(tokenize, package, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    for language in ("ja", "ko"):
        module = importlib.import_module(f"sacrebleu.tokenizers.tokenizer_{language}_mecab")
        monkeypatch.setattr(module, "MeCab", None)
    message = f"--tokenize {tokenize} is not installed: pip install {package}\\."
    with pytest.raises(UserError, match=message):
        bleu_chrf_wer.Bleu(tokenize)


def test_a_tokenizer_whose_model_cannot_be_downloaded_is_a_sentence(monkeypatch):
    def fail(metric):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(bleu_chrf_wer.Bleu, "_official", fail)
    with pytest.raises(UserError, match=r"--tokenize spm is not installed: .*no route to host"):
        bleu_chrf_wer.Bleu("spm")
