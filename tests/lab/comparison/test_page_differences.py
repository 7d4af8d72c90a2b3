"""Words and translations in which two runs differ, by hand."""

import re

import numpy as np
import pytest

from zoo.data.encoded_text import EncodedText
from zoo.lab.comparison import page_differences
from zoo.lab.comparison.page_differences import AttendedSentence
from zoo.lab.evaluation.best_words import ScoredWords
from zoo.lexicon import Lexicon


def scored_words(log_prob):
    words = np.array([0, 1, 2, 0, 1, 3], np.int32)
    mask = np.ones(6, bool)
    text = EncodedText(words, mask, mask, np.array([0, 3]))
    return ScoredWords(text, np.arange(6), np.array(log_prob, np.float32))


@pytest.mark.parametrize("rows", [None, 8])
def test_the_rows_in_which_a_carried_state_begins_empty_are_told(rows):
    scores = [scored_words([-1, -2, -3, -4, -5, -6]), scored_words([-2, -1, -3, -9, -9, -9])]
    sentence = page_differences._describe_shares(["a", "b"], scores, rows)
    assert "Of 6 counted words a predicts 4 better (66.7%), and b 1 (16.7%)." in sentence
    assert ("the state begins empty in each of 8 rows of the text" in sentence) == bool(rows)


def test_words_that_differ_most():
    lexicon = Lexicon(("le", "chat", "dort", "rit"), np.ones(4, np.int64))
    baseline = scored_words([-1, -2, -3, -1, -2, -9])
    candidate = scored_words([-1, -4, -2.5, -1, -3, -1])
    differences = page_differences.largest_differences(baseline, candidate, lexicon)
    first, second = ([(row.sentence, row.before, row.word) for row in rows] for rows in differences)
    assert first == [(1, "le", "chat")]  # +2, and after the same word again +1
    assert second == [(2, "le chat", "rit"), (1, "le chat", "dort")]  # -8, -0.5
    assert (differences[1][0].first, differences[1][0].second) == (-9, -1)


def test_attention_is_drawn_by_area():
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    table = page_differences.draw_attention(
        AttendedSentence(["a", "b"], ["x", "y"], [], weights), "about <it>"
    )
    sides = re.findall(r"--side: ([\d.]+)", table)
    assert [float(side) for side in sides] == pytest.approx([1, 0, 0.5, 0.75**0.5], abs=0.001)
    assert 'title="y ← b: 0.75"' in table and "about &lt;it&gt;" in table
