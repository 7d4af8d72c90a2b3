"""Scores of translations, their intervals and tests, against sacrebleu's own scores of texts."""

import itertools

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from tests import passports
from zoo.lab.evaluation import translation_quality

OFFICIAL = {"BLEU": BLEU(tokenize="none", force=True), "chrF2": CHRF()}
WORDS = [f"{first}{second}" for first in "abcdef" for second in "klmno"]


def texts(generator, count, errors=()):
    """References of 5 to 12 words, and a list of hypotheses for each rate of wrong words."""
    references = [[*generator.choice(WORDS, length)] for length in generator.integers(5, 13, count)]
    systems = [
        [
            [generator.choice(WORDS) if generator.random() < rate else word for word in words]
            for words in references
        ]
        for rate in errors
    ]
    return references, *([" ".join(words) for words in lines] for lines in systems)


def result(lines, references):
    """What `translation_quality.read` gives of hypotheses."""
    digest = translation_quality.passport.data_of("", references).sha256
    record = passports.make(passports.TRANSLATION, data__sha256=digest, tokens=len(lines))
    return record, lines


@pytest.fixture
def rows_of(monkeypatch):
    """Rows of `compare` without the check that figures are of one quantity."""
    monkeypatch.setattr(translation_quality, "check_results", lambda *_: None)

    def rows(references, *systems):
        results = [result(lines, references) for lines in systems]
        names = [f"run {number}" for number in range(len(systems))]
        return translation_quality.compare(names, results, references)

    return rows


def test_sums_of_statistics_have_the_score_of_the_text():
    references, hypotheses = texts(np.random.default_rng(1), 30, [0.3])
    references = [" ".join(words) for words in references]
    sample = [3, 3, 7, 11, 28, 0]
    for name, metric in translation_quality.make_metrics("none").items():
        counts = metric.count_corpus(hypotheses, references)
        expected = [
            OFFICIAL[name].corpus_score(
                [hypotheses[n] for n in rows], [[references[n] for n in rows]]
            )
            for rows in (range(30), sample)
        ]
        scores = metric.figure(np.stack([counts.sum(0), counts[sample].sum(0)]))
        np.testing.assert_allclose(scores, [score.score for score in expected], rtol=1e-9)


def test_p_is_the_share_of_exchanges_of_whole_sentences_with_as_large_a_difference(rows_of):
    references, baseline, candidate = texts(np.random.default_rng(6), 8, [0.3, 0.4])
    lines = [" ".join(words) for words in references]
    (_, row) = rows_of(references, baseline, candidate)
    for name, metric in OFFICIAL.items():
        differences = []
        for exchange in itertools.product((False, True), repeat=8):
            swapped = [*zip(exchange, baseline, candidate, strict=True)]
            first = [b if swap else a for swap, a, b in swapped]
            second = [a if swap else b for swap, a, b in swapped]
            scores = [metric.corpus_score(text, [lines]).score for text in (first, second)]
            differences.append(abs(scores[0] - scores[1]))
        expected = np.mean(np.array(differences) >= differences[0] - 1e-9)
        assert 0.01 < expected < 0.8
        assert row[name]["p"] == pytest.approx(expected, abs=0.015)


def test_one_run_has_an_interval_of_sentences_drawn_anew(rows_of):
    references, hypotheses = texts(np.random.default_rng(5), 25, [0.3])
    lines = [" ".join(words) for words in references]
    (row,) = rows_of(references, hypotheses)
    generator = np.random.default_rng(9)
    for name, metric in OFFICIAL.items():
        scores = []
        for _ in range(200):
            rows = generator.integers(25, size=25)
            text = [hypotheses[n] for n in rows], [[lines[n] for n in rows]]
            scores.append(metric.corpus_score(*text).score)
        expected = np.quantile(scores, (0.025, 0.975))
        assert row[name]["p"] is None
        # Of 1,000 and 200 draws: an end is off by some hundredths of the width.
        np.testing.assert_allclose(row[name]["interval"], expected, atol=np.ptp(expected) / 5)
