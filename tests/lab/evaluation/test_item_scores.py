"""Scores that were kept find their words again."""

import dataclasses

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.lab.evaluation import best_words, item_scores, scored_texts
from zoo.lab.evaluation.perplexity import Band
from zoo.lab.evaluation.scored_texts import ScoredText


@pytest.fixture
def result(run):
    """The passport of the test, its kept scores, and all scores."""
    corpus = run.read("test")
    text, scores = run.score_corpus(corpus)
    record = scored_texts.passport_of(ScoredText(run, "test", corpus, text, scores))
    return record, item_scores.from_text(text, scores, run.lexicon), scores


def test_words_have_their_scores(run, result):
    record, arrays, scores = result
    scored_words = best_words.read(run, record, arrays)
    words = [run.lexicon.words[word] for word in scored_words.text.words[scored_words.positions]]
    assert words[:5] == ["le", "<unk>", "dort", ".", "les"]  # boundaries are not counted
    expected = scores.log_prob[scored_words.positions]
    np.testing.assert_allclose(
        scored_words.log_prob, expected, rtol=0, atol=0.5 / item_scores.PARTS
    )


def test_words_whose_counts_are_not_known_are_in_no_band(run, result):
    _, arrays, _ = result
    lexicon = dataclasses.replace(run.lexicon, counts=np.zeros(len(run.lexicon), np.int64))
    text, scores = run.score_corpus(run.read("test"))
    band = item_scores.from_text(text, scores, lexicon)["band"]
    assert band.tolist() == [-1 if number == -1 else -2 for number in arrays["band"]]
    rows = scores.bands(text.occurrences(lexicon), text.unknown(lexicon))
    assert [row.band for row in rows] == ["unknown"]


def test_an_interval_of_a_band_by_hand(result):
    _, arrays, _ = result
    # Two sentences have an unknown word each, of 1 and of 3 nats; all other words have 2 nats. Two
    # draws of the two have a mean of 1, 2 or 3, the ends with a probability of a quarter each.
    log_prob = np.full(len(arrays["log_prob"]), -2, np.float32)
    log_prob[[1, 7]] = -1, -3
    arrays = {**arrays, "log_prob": log_prob}
    unknown, seen = (Band(name, 2, 2.0, 7.4) for name in ("unknown", "1-9"))
    intervals = item_scores.band_intervals([unknown, seen], arrays)
    assert intervals == [(unknown, (1, 3)), (seen, (2, 2))]
    # Kept scores are rounded: the interval of a band of one value has the exact figure within.
    exact = dataclasses.replace(seen, log_perplexity=2.000004)
    assert item_scores.band_intervals([exact], arrays) == [(exact, (2, 2.000004))]


def test_what_does_not_belong_is_refused(run, result):
    record, arrays, _ = result
    with pytest.raises(UserError, match="no scores of the words of test are kept"):
        best_words.read(run, record, None)
    changed_data = dataclasses.replace(record.data, sha256="0")
    changed_record = dataclasses.replace(record, data=changed_data)
    with pytest.raises(UserError, match="has changed since test was judged"):
        best_words.read(run, changed_record, arrays)
    with pytest.raises(UserError, match="not a split of the run"):
        best_words.read(run, dataclasses.replace(record, split="data:a.txt"), arrays)
    with pytest.raises(UserError, match="3 scores are kept of test, and it has 20 counted"):
        best_words.read(run, record, {"log_prob": np.zeros(3), "lengths": np.array([3])})
    words = dataclasses.replace(run.lexicon, words=("x", *run.lexicon.words[1:]), boundary="x")
    with pytest.raises(UserError, match="over other words"):
        best_words.read(dataclasses.replace(run, lexicon=words), record, arrays)
