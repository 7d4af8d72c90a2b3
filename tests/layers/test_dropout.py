"""Dropout's masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo.cores import NGram
from zoo.errors import UserError
from zoo.layers import dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.65])
def test_masks_keep_the_mean(rate):
    keys = jax.random.split(jax.random.key(0), 2)
    masks = np.asarray(dropout.masks(keys, (100, 100), rate, jnp.float32))
    assert masks.shape == (2, 100, 100)
    assert masks.dtype == np.float32
    np.testing.assert_allclose(np.unique(masks), [0, 1 / (1 - rate)], rtol=1e-4)
    # 5 standard deviations of the mean of 20,000 numbers.
    assert abs(masks.mean() - 1) < 5 * np.sqrt(rate / (1 - rate) / 20_000)


def test_a_rate_that_would_drop_everything_is_refused():
    highest = 1 - 1 / 65536
    masks = dropout.masks(jax.random.split(jax.random.key(0), 2), (100,), highest, jnp.float32)
    assert np.isin(masks, [0, 65536]).all()
    NGram(dropout=highest)
    for rate in (1 - 0.4 / 65536, 1.0, -0.1, np.nan, np.inf):
        with pytest.raises(UserError, match=f"dropout of NGram is {rate}: give "):
            NGram(dropout=rate)


def test_masks_of_rows_positions_and_cells_differ():
    keys = jax.random.split(jax.random.key(0), 3)
    dropped = np.asarray(dropout.masks(keys, (50, 40), 0.5, jnp.float32)) == 0
    for axis in range(3):
        first, second = np.take(dropped, 0, axis), np.take(dropped, 1, axis)
        assert 0.2 < (first != second).mean() < 0.8


def test_a_dropped_word_is_dropped_wherever_it_occurs(random):
    words = random.integers(5_000, size=(3, 700))
    vectors = jnp.asarray(random.normal(size=(3, 700, 4)))
    dropped = dropout.drop_words(vectors, jnp.asarray(words), 0.2, jax.random.key(0))
    factors = np.asarray(dropped / vectors)
    assert (np.ptp(factors, axis=-1) < 1e-6).all()  # all numbers of a vector, or none
    factor_by_word = {}
    for word, scale in zip(words.ravel(), factors[..., 0].ravel(), strict=True):
        np.testing.assert_allclose(factor_by_word.setdefault(word, scale), scale, rtol=1e-5)
    scales = np.array([*factor_by_word.values()])
    np.testing.assert_allclose(np.unique(scales.round(4)), [0, 1.25], rtol=1e-3)
    assert abs(scales.mean() - 1) < 5 * np.sqrt(0.25 / len(scales))
    redrawn = dropout.drop_words(vectors, jnp.asarray(words), 0.2, jax.random.key(1))
    assert np.abs(redrawn - dropped).max() > 0


@pytest.mark.parametrize("rate", [0.25, *slow(0.5)])
def test_the_mask_of_a_matrix_does_not_depend_on_the_blocks_in_which_it_is_drawn(rate, monkeypatch):
    weights = jnp.ones((61, 300))

    def draw():
        return jax.jit(lambda weights: dropout.weight_mask(weights, rate, jax.random.key(3)))

    mask = draw()(weights)
    monkeypatch.setattr(dropout, "DRAWN_AT_A_TIME", 7 * 300)
    in_blocks = draw()(weights)
    np.testing.assert_array_equal(mask.is_kept, in_blocks.is_kept)
    dropped = np.asarray(dropout.drop_weights(weights, mask))
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / (1 - rate)], rtol=1e-6)
    assert abs(dropped.mean() - 1) < 5 * np.sqrt(rate / (1 - rate) / weights.size)
    assert (dropped[0] != dropped[1]).any() and (dropped[:, 0] != dropped[:, 1]).any()


# Drawn from 1, 2, 4, 8 and 16 bits.
@pytest.mark.parametrize("rate", [0.3, *slow(0.5, 0.25, 0.9375, 0.0078125)])
def test_each_entry_of_a_matrix_is_dropped_by_itself(rate):
    """Also where many share a random word: of any two columns the products have both means."""
    rows, columns = 20_000, 39
    draw = jax.jit(dropout.weight_mask, static_argnums=1)
    mask = draw(jnp.ones((rows, columns)), rate, jax.random.key(0))
    dropped = 1 - np.asarray(mask.is_kept, np.float64)
    variance = rate * (1 - rate)
    assert np.abs(dropped.mean(axis=0) - rate).max() < 5 * np.sqrt(variance / rows)
    centred = (dropped - rate) / np.sqrt(variance)
    products = centred.T @ centred / rows - np.eye(columns)
    assert np.abs(products[~np.eye(columns, dtype=bool)]).max() < 7 / np.sqrt(rows)
