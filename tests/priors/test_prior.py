"""Backgrounds of a corpus that can be counted by hand."""

import numpy as np
import pytest

from tests.priors.test_morphology import CORPORA, WORDS
from zoo.errors import UserError
from zoo.priors import Uniform, Unigram


@pytest.mark.parametrize(
    ("background", "words", "expected"),
    [
        (Unigram(), ("la", "chat", "ferme", "le"), [1 / 9, 2 / 9, 3 / 9, 3 / 9]),
        (Unigram(), ("chat", "le"), [2 / 5, 3 / 5]),  # tokens outside the lexicon do not count
        # </s> 0, la 0, chat 2, ferme 2, le 3 in train; half a token more for each.
        (Unigram(("train",), 0.5), WORDS, np.array([0.5, 0.5, 2.5, 2.5, 3.5]) / 9.5),
        (Uniform(), WORDS, [1 / 5] * 5),
    ],
)
def test_backgrounds_by_hand(background, words, expected):
    log_probs = background.log_probs(words, CORPORA)
    np.testing.assert_allclose(np.exp(log_probs), expected)
    assert log_probs.dtype == np.float64


def test_a_word_without_mass_is_an_error():
    with pytest.raises(UserError, match=r"no mass to 'la', .* set its smoothing"):
        Unigram(splits=("train",)).log_probs(("chat", "la", "le"), CORPORA)
