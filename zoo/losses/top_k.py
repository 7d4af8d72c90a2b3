"""The most probable words of a softmax, and samples from it, by one pass over the vocabulary.

No array [tokens, V] is held: blocks of words give their k best, and the k best of these are kept. A
sample is the best word after Gumbel noise is added to the scores (Gumbel 1954).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.losses.softmax import (
    UNSHAPED,
    Exponentials,
    Shaping,
    check_softmax,
    logits_of_rows,
    vocabulary_block,
)
from zoo.losses.value_checks import check_key


class Pass(NamedTuple):
    """The results of one pass over the vocabulary."""

    log_z: jax.Array  # log Z of each token, [N], nats
    values: jax.Array  # the k highest logits, [N, k], falling
    words: jax.Array  # their words, int32 [N, k]
    sample: jax.Array | None  # words drawn from the softmax, int32 [N]; None without a key


def blocked_pass(hidden, weights, bias, block, shaping=UNSHAPED, *, k=0, key=None) -> Pass:
    """Computes log Z, the k best words and a sample in one pass over blocks of the vocabulary.

    The sample is the argmax of o_v + g_v with standard Gumbel noise g (Gumbel 1954), which is
    distributed as the softmax of o.
    """
    hidden, weights, bias = vary_together((hidden, weights, bias))
    hidden = as_wide(hidden, weights, bias)
    tokens, dtype = hidden.shape[0], accumulator(hidden)
    cut = row_blocks.RowBlocks.from_size(weights.shape[0], block)

    def step(carry, number):
        sums, highest_words, highest, sample = carry
        block_logits, _ = logits_of_rows(cut, number, shaping, hidden, weights, bias)
        block_words = cut.row_numbers(number).astype(jnp.int32)
        sums, _ = sums.plus(block_logits)
        if k:
            values, columns = jax.lax.top_k(block_logits, min(k, cut.size))
            words = cut.masked(number, block_words, cut.rows)  # behind all words
            highest_words = best(k, highest_words, (values, words[columns]))
        if key is not None:
            noise_key = jax.random.fold_in(key, number * cut.size)
            noisy = block_logits + jax.random.gumbel(noise_key, block_logits.shape, dtype)
            drawn = block_words[noisy.argmax(-1)]
            sample = jnp.where(noisy.max(-1) > highest, drawn, sample)
            highest = jnp.maximum(highest, noisy.max(-1))
        return (sums, highest_words, highest, sample), None

    initial = (
        Exponentials.none(hidden),
        (
            sharded_functions.filled((tokens, k), -jnp.inf, dtype, hidden),
            sharded_functions.filled((tokens, k), cut.rows, jnp.int32, hidden),
        ),
        sharded_functions.filled(tokens, -jnp.inf, dtype, hidden),
        sharded_functions.zeros(tokens, jnp.int32, hidden),
    )
    (sums, (values, words), _, sample), _ = jax.lax.scan(step, initial, cut.numbers())
    return Pass(sums.log(), values, words, None if key is None else sample)


def check_k(k, vocabulary: int):
    """Raises ValueError unless k is from 1 to V, TypeError if it is an array."""
    if hasattr(k, "dtype") and not isinstance(k, np.integer):
        raise TypeError(f"k is an array, {k}: give a Python integer, which sets a shape")
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not whole or not 1 <= k <= vocabulary:
        some = f"1 to {vocabulary:,}"
        raise ValueError(f"k is {k!r}, and there are {vocabulary:,} words: give {some}")


def best(k, *found):
    """Returns the k best of some candidates, (values [N, k], words int32 [N, k]), best first; of
    equal values, lower words first."""
    values, words = (jnp.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    falling, words = jax.lax.sort((-values, words), num_keys=2)
    return -falling[:, :k], words[:, :k]


@over_tokens("hidden")
def softmax_top_k(hidden, weights, bias, k, *, soft_cap=None):
    """Finds the k most probable words of the softmax, by blocks of the vocabulary.

    Args:
      hidden, weights, bias: see `softmax_loss`.
      k: the number of words, at most V.
      soft_cap: see `softmax_loss`.

    Returns:
      (log-probabilities [..., k], nats; words int32 [..., k]), best first.

    Raises:
      ValueError: shapes do not agree, or k is above V.

    Example:
      >>> bias = jnp.log(jnp.array([0.2, 0.5, 0.3]))
      >>> log_probs, words = losses.softmax_top_k(jnp.ones(4), jnp.zeros((3, 4)), bias, 2)
      >>> print(words, jnp.exp(log_probs).round(2))
      [1 2] [0.5 0.3]
    """
    check_softmax(hidden, weights, bias)
    check_k(k, weights.shape[0])
    flat = hidden.reshape(-1, hidden.shape[-1])
    block = vocabulary_block(flat.shape[0], *weights.shape)
    walk = blocked_pass(flat, weights, bias, block, Shaping.from_options(soft_cap), k=k)
    shape = (*hidden.shape[:-1], k)
    return (walk.values - walk.log_z[:, None]).reshape(shape), walk.words.reshape(shape)


@over_tokens("hidden")
def softmax_sample(hidden, weights, bias, key, *, soft_cap=None, temperature=1.0):
    """Draws words from the softmax, by blocks of the vocabulary.

    Args:
      hidden, weights, bias: see `softmax_loss`.
      key: a key of `jax.random`.
      soft_cap: see `softmax_loss`.
      temperature: T, above 0.

    Returns:
      Words, int32 [...].

    Raises:
      ValueError: shapes do not agree, or a number is out of range.

    Example:
      >>> table = jnp.zeros((3, 4)), jnp.array([0.0, 90.0, 0.0])  # word 1 has all the mass
      >>> print(losses.softmax_sample(jnp.ones((2, 4)), *table, jax.random.key(0)))
      [1 1]

    Source: Gumbel (1954): the sample is the best word after Gumbel noise is added.
    """
    check_key("key", key)
    check_softmax(hidden, weights, bias)
    flat = hidden.reshape(-1, hidden.shape[-1])
    block = vocabulary_block(flat.shape[0], *weights.shape)
    shaping = Shaping.from_options(soft_cap, temperature)
    drawn = blocked_pass(flat, weights, bias, block, shaping, key=key).sample
    assert drawn is not None  # of a key
    return drawn.reshape(hidden.shape[:-1])
