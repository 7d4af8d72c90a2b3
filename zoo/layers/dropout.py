"""Dropout of vectors and weights, by masks that depend on a row's own key, not on its batch."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo import errors
from zoo.base.arrays import row_blocks
from zoo.errors import UserError, field_name

# Rates are rounded to multiples of 1 / _STEPS, to be compared with random numbers of 16 bits.
_STEPS = 65536
# Entries of a matrix whose mask is drawn at once. The generator takes up to 16 bytes an entry, of
# which XLA may keep eight, not the mask, until the backward pass. Of a loop it keeps the results.
DRAWN_AT_A_TIME = 1 << 20


def check_rates(recipe, *fields: str):
    """Raises UserError if a dropout rate is below 0, or if `masks` would round it to 1."""
    errors.check_rates(recipe, "", *fields)
    for field in fields:
        rate = getattr(recipe, field)
        if _threshold(rate) == _STEPS:
            raise UserError(
                f"{field_name(recipe, field)} is {rate}: give a rate below 1 by 1/{_STEPS} or more."
            )


def _threshold(rate):
    return round(rate * _STEPS)


def masks(keys: jax.Array, shape: tuple[int, ...], rate: float, dtype) -> jax.Array:
    """Draws masks [B, *shape]: 0 with probability `rate`, rounded to 1/65536, and 1 / (1 - rate)
    otherwise. Each takes 16 random bits, which halves the generator's share of a training step."""
    random_bits = jax.vmap(lambda key: jax.random.bits(key, shape, jnp.uint16))(keys)
    return jnp.where(random_bits >= _threshold(rate), _factor(rate), 0).astype(dtype)


def _draw_kept_by_few_bits(keys, count, rate):
    """Draws which entries of rows are kept, bool [B, count], with as many random bits as the rate
    needs, from one for 1/2 to 16: of a large matrix, the generator is most of a mask's time."""
    threshold = _threshold(rate)
    bit_counts = (1, 2, 4, 8) if isinstance(threshold, int) else ()  # not for a traced rate
    bits = next((bits for bits in bit_counts if threshold % (_STEPS >> bits) == 0), 16)
    words = -(-count * bits // 32)
    random_bits = jax.vmap(lambda key: jax.random.bits(key, (words,), jnp.uint32))(keys)[:, None]
    parts = random_bits >> jnp.arange(0, 32, bits, dtype=jnp.uint32)[None, :, None] & (2**bits - 1)
    return (parts >= threshold // (_STEPS >> bits)).reshape(len(keys), -1)[:, :count]


def _factor(rate):
    """Returns 1 / (1 - rate), of the rounded rate."""
    return _STEPS / (_STEPS - _threshold(rate))


def drop(x: jax.Array, rate: float, keys: jax.Array, locked: bool = False) -> jax.Array:
    """Multiplies vectors by masks."""
    time = 1 if locked else x.shape[0]
    return x * masks(keys, (time, x.shape[-1]), rate, x.dtype).swapaxes(0, 1)


class WeightMask(NamedTuple):
    """A mask of the entries of a matrix, a quarter of the size of its float32 entries.

    `factor`: 1 / (1 - rate), a scalar of the matrix's type, by which the other entries are
    multiplied.
    """

    is_kept: jax.Array  # bool [D, E], False where the entry is set to 0
    factor: jax.Array


def weight_mask(weights: jax.Array, rate: float, key: jax.Array) -> WeightMask:
    """Draws the mask of a matrix (Wan et al. 2013; Merity et al. 2018)."""
    rows, columns = weights.shape

    def draw_rows(arrays):
        keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(arrays[0])
        return _draw_kept_by_few_bits(keys, columns, rate)

    block = row_blocks.even_block(rows, max(1, DRAWN_AT_A_TIME // columns))
    is_kept = row_blocks.map_rows(draw_rows, (jnp.arange(rows),), block)
    return WeightMask(is_kept, jnp.asarray(_factor(rate), weights.dtype))


def drop_weights(weights: jax.Array, mask: WeightMask | None) -> jax.Array:
    return weights if mask is None else jnp.where(mask.is_kept, weights * mask.factor, 0)


def drop_words(vectors: jax.Array, words: jax.Array, rate: float, key: jax.Array) -> jax.Array:
    """Multiplies vectors [..., E] by one number a word, the same wherever the word occurs (Gal and
    Ghahramani 2016, section 4.2)."""
    keys = jax.vmap(lambda word: jax.random.fold_in(key, word))(words.reshape(-1))
    return vectors * masks(keys, (1,), rate, vectors.dtype).reshape(*words.shape, 1)


# ------------ penalties on hidden states: activation regularisation, and its temporal form
# Merity, McCann and Socher, "Revisiting activation regularization for language RNNs" (2017). With
# h_t of D numbers, the penalties of a position are
#
#     activation:  mean over D of h_t^2
#     temporal:    mean over D of (h_t - h_(t-1))^2
#
# A step's penalty is the mean over its T positions, of which the first has no temporal one; the
# authors' code divides by T - 1 there.


def activation_penalty(hidden: jax.Array) -> jax.Array:
    """Computes the mean square of each hidden state."""
    return jnp.square(hidden).mean(axis=-1)


def temporal_penalty(hidden: jax.Array, reset: jax.Array | None = None) -> jax.Array:
    """Computes the mean square of each hidden state's difference from the one before it."""
    steps = activation_penalty(hidden - jnp.concatenate([hidden[:, :1], hidden[:, :-1]], axis=1))
    return steps if reset is None else jnp.where(reset, 0, steps)
