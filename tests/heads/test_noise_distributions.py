"""Distributions of noise words, by hand."""

import numpy as np
import pytest

from tests import examples
from zoo.errors import UserError
from zoo.heads import NCE, ImportanceSampling, LogUniformNoise, Noise, UniformNoise, UnigramNoise


def test_probabilities_by_hand():
    np.testing.assert_allclose(UniformNoise().probabilities([4, 1, 2]), [1 / 3] * 3)
    # Ranks: the second word first, then the two of equal count in their order.
    found = LogUniformNoise().probabilities([2, 9, 2])
    np.testing.assert_allclose(found, np.log([3 / 2, 2, 4 / 3]) / np.log(4))
    np.testing.assert_allclose(
        UnigramNoise(smoothing=0).probabilities([1, 3, 4]), [1 / 8, 3 / 8, 1 / 2]
    )
    found = UnigramNoise(power=0.5, smoothing=1).probabilities([0, 3, 8])
    np.testing.assert_allclose(found, [1 / 6, 2 / 6, 3 / 6])


def test_words_without_mass_are_refused():
    with pytest.raises(UserError, match="smoothing of UnigramNoise above 0"):
        UnigramNoise(smoothing=0).probabilities([5, 0, 90])


def test_an_unknown_unit_of_noise_is_refused():
    with pytest.raises(
        UserError, match="noise_per of ImportanceSampling is 'word': give one of batch, row, token"
    ):
        ImportanceSampling(noise_per="word")


def test_negative_counts_are_named():
    with pytest.raises(ValueError, match=r"^counts has -2 at \[1\]: give occurrences, at least 0$"):
        UnigramNoise().probabilities(np.array([3, -2]))


def test_counts_of_ones_own_noise_are_no_probabilities():
    class Counted(Noise):
        def probabilities(self, counts):
            return counts

    head = NCE(noise=Counted(), samples=2)
    with pytest.raises(ValueError, match=r"^the probabilities sum to .*: divide them, or counts"):
        head.tables(examples.lexicon())
