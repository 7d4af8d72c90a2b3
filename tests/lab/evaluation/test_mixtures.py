"""The mixture with a uniform distribution over words that training never saw, by hand."""

import dataclasses
import math

import numpy as np
import pytest

from zoo.lab.evaluation import mixtures, scored_texts
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.figures import Mixture
from zoo.lab.evaluation.mixtures import mix, tune_weight
from zoo.lab.evaluation.scored_texts import ScoredText

# p of five words of a text; training never saw the last two. N = 4 words are such.
P = [0.5, 0.25, 0.1, 0.001, 0.02]
UNSEEN = np.array([False, False, False, True, True])
WORDS = 4


def by_hand(weight):
    """Nats per word of the mixture, term by term."""
    total = 0.0
    for p, unseen in zip(P, UNSEEN, strict=True):
        total -= math.log((1 - weight) * p + (weight / WORDS if unseen else 0))
    return total / len(P)


def test_the_mixture_by_hand():
    log_prob = mix(np.log(P), UNSEEN, 0.2, WORDS)
    expected = [0.8 * 0.5, 0.8 * 0.25, 0.8 * 0.1, 0.8 * 0.001 + 0.05, 0.8 * 0.02 + 0.05]
    np.testing.assert_allclose(log_prob, np.log(expected), rtol=1e-14)
    np.testing.assert_allclose(mix(np.log(P), UNSEEN, 0.0, WORDS), np.log(P), rtol=1e-14)
    assert mix(np.array([-np.inf]), np.array([True]), 0.5, 2) == pytest.approx(math.log(0.25))


def test_the_weight_of_words_without_probability_is_their_share():
    """(1 - l)^3 (l/4)^2 is greatest at l = 2/5."""
    log_prob = np.log([0.5, 0.2, 0.1, 1e-300, 1e-300])
    assert tune_weight(log_prob, UNSEEN, WORDS) == pytest.approx(0.4, abs=1e-12)


def test_no_other_weight_is_better():
    weight = tune_weight(np.log(P), UNSEEN, WORDS)
    grid = [by_hand(step / 10_000) for step in range(10_000)]
    assert abs(weight - int(np.argmin(grid)) / 10_000) <= 1e-4
    assert by_hand(weight) <= min(grid)


def test_no_weight_where_the_text_gives_no_reason():
    assert tune_weight(np.log([0.5, 0.4]), np.array([False, False]), WORDS) == 0
    assert tune_weight(np.log([0.5, 0.4]), np.array([False, True]), WORDS) == 0  # more than 1/4
    assert tune_weight(np.full(2, -np.inf), np.array([False, True]), WORDS) == pytest.approx(0.5)
    assert 0.999 < tune_weight(np.log([0.01]), np.array([True]), WORDS) < 1


def test_a_run_over_more_words_than_it_was_trained_on(run, tmp_path):
    """The passport has the figure of the mixture, by a loop over the words of the text."""
    assert mixtures.from_run(run) is None  # its lexicon is the training text's
    words = tmp_path / "words.txt"
    words.write_text("zèbre\nchèvre\nmouton\n", encoding="utf-8")
    wider = NewLexicon(str(words), adds=True, spread=True).apply(run)
    assert mixtures.unseen_words(wider.lexicon) == 3
    assert mixtures.from_run(wider) == Mixture(0.0, 3, "validation")  # validation has none of them
    mixture = mixtures.from_run(wider, 0.125)
    assert mixture == Mixture(0.125, 3, None)
    corpus = wider.read("test")
    text, scores = wider.score_corpus(corpus)
    losses = []
    for word, log_prob, counted in zip(text.words, scores.log_prob, scores.counted, strict=True):
        if counted:
            is_new = wider.lexicon.words[word] in ("zèbre", "chèvre", "mouton")
            losses.append(-math.log(0.875 * math.exp(log_prob) + 0.125 / 3 * is_new))
    scored = ScoredText(wider, "test", corpus, text, scores)
    figures = scored_texts.passport_of(scored, mixture).figures
    assert figures.mixture.log_perplexity == pytest.approx(np.mean(losses), rel=1e-6)
    assert figures.mixture.weight == 0.125
    seen_scores = dataclasses.replace(
        scores, counted=scores.counted & (wider.lexicon.counts[text.words] > 0)
    )
    assert (
        figures.seen.tokens == seen_scores.tokens == scores.tokens - 2
    )  # without zèbre and the comma
    assert figures.seen.log_perplexity == pytest.approx(seen_scores.log_perplexity)
