"""Softmaxes of one block of words, and of several."""

import pytest

from tests.losses.softmax_problems import SIZES
from tests.marks import slow
from zoo.losses import softmax


# Blocks that divide the words, test_chosen_words.py has at once.
@pytest.fixture(params=[*SIZES[:2], *slow((SIZES[2],))])
def words(request, monkeypatch):
    """The number of words; small blocks of them where all are too many at a time."""
    count, logits_at_a_time = request.param
    if logits_at_a_time is not None:
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", logits_at_a_time)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    return count
