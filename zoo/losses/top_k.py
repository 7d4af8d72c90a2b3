"""The most probable words of a softmax, and samples from it, by one pass over the vocabulary.

No array [tokens, V] is held: blocks of words give their k best, and the k best of these are kept. A
sample is the best word after Gumbel noise is added to the scores (Gumbel 1954).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array
from zoo.losses import softmax, value_checks
from zoo.losses.shaping import Shaping


class VocabularyPass(NamedTuple):
    """The results of one pass over the vocabulary."""

    log_z: Array  # log Z of each token, [N], nats
    values: Array  # the k highest logits, [N, k], falling
    words: Array  # their words, int32 [N, k]
    sample: Array | None  # words drawn from the softmax, int32 [N]; None without a key


def vocabulary_pass(operands, shaping, *, block: int = 0, k: int = 0, key=None) -> VocabularyPass:
    """Computes log Z, the k best words with their logits, and a sample in one pass over the words.

    The sample is the argmax of o_v + g_v with standard Gumbel noise g (Gumbel 1954), which is
    distributed as the softmax of o. `operands`: (hidden [..., D], weights, bias); `shaping`: the
    soft cap and temperature of the logits; `block`: the rows of W in a block, 0 for a fast choice.
    """
    (hidden, weights, bias), shaping = vary_together((operands, shaping))
    hidden = as_wide(hidden, weights, bias).reshape(-1, hidden.shape[-1])
    tokens, dtype = hidden.shape[0], accumulator(hidden)
    block = block or softmax.vocabulary_block(tokens, *weights.shape)
    blocks = row_blocks.RowBlocks.from_size(weights.shape[0], block)

    def step(carry, number):
        sums, highest_words, highest, sample = carry
        block_logits, _ = softmax.logits_of_block(blocks, number, shaping, (hidden, weights, bias))
        block_words = blocks.row_numbers(number).astype(jnp.int32)
        sums, _ = sums.add(block_logits)
        if k:
            values, columns = jax.lax.top_k(block_logits, min(k, blocks.size))
            words = blocks.masked(number, block_words, blocks.rows)  # behind all words
            highest_words = select_best(k, highest_words, (values, words[columns]))
        if key is not None:
            noise_key = jax.random.fold_in(key, number * blocks.size)
            noisy = block_logits + jax.random.gumbel(noise_key, block_logits.shape, dtype)
            sample = jnp.where(noisy.max(-1) > highest, block_words[noisy.argmax(-1)], sample)
            highest = jnp.maximum(highest, noisy.max(-1))
        return (sums, highest_words, highest, sample), None

    initial = (
        softmax.Exponentials.empty(hidden),
        (
            sharded_functions.filled((tokens, k), -jnp.inf, dtype, hidden),
            sharded_functions.filled((tokens, k), blocks.rows, jnp.int32, hidden),
        ),
        sharded_functions.filled(tokens, -jnp.inf, dtype, hidden),
        sharded_functions.zeros(tokens, jnp.int32, hidden),
    )
    (sums, (values, words), _, sample), _ = jax.lax.scan(step, initial, blocks.numbers())
    return VocabularyPass(sums.log(), values, words, None if key is None else sample)


def check_k(k: Any, vocabulary: int):
    """Raises ValueError unless k is a whole number from 1 to V, TypeError if it is an array."""
    if hasattr(k, "dtype") and not isinstance(k, np.integer):
        raise TypeError(f"k is an array, {k}: give a Python integer, which sets a shape")
    is_integer = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not is_integer or not 1 <= k <= vocabulary:
        count = f"{vocabulary:,}"
        raise ValueError(f"k is {k!r}, and there are {count} words: give 1 to {count}")


def select_best(k: int, *candidates: tuple[Array, Array]) -> tuple[Array, Array]:
    """Selects the k highest values of lists of (values, words) [N, ?] each, best first.

    Gives (values [N, k], words int32 [N, k]); of equal values, lower words first.
    """
    values, words = (jnp.concatenate(parts, axis=-1) for parts in zip(*candidates, strict=True))
    falling, words = jax.lax.sort((-values, words), num_keys=2)
    return -falling[:, :k], words[:, :k]


@over_tokens("hidden")
def softmax_top_k(hidden, weights, bias, k, *, soft_cap=None) -> tuple[Array, Array]:
    """Finds the k most probable words of the softmax, by blocks of the vocabulary.

    Args:
      hidden, weights, bias: see `softmax_loss`.
      k: the number of words, at most V.
      soft_cap: see `softmax_loss`.

    Returns:
      (log-probabilities [..., k], nats; words int32 [..., k]), best first.

    Raises:
      ValueError: shapes do not agree, or k is not from 1 to V. TypeError: k is an array.

    Example:
      >>> bias = jnp.log(jnp.array([0.2, 0.5, 0.3]))
      >>> log_probs, words = losses.softmax_top_k(jnp.ones(4), jnp.zeros((3, 4)), bias, 2)
      >>> print(words, jnp.exp(log_probs).round(2))
      [1 2] [0.5 0.3]
    """
    softmax.check_softmax((hidden, weights, bias))
    check_k(k, weights.shape[0])
    shaping = Shaping.from_options(soft_cap, tokens=hidden.shape[:-1])
    results = vocabulary_pass((hidden, weights, bias), shaping, k=k)
    shape = (*hidden.shape[:-1], k)
    return (results.values - results.log_z[:, None]).reshape(shape), results.words.reshape(shape)


@over_tokens("hidden")
def softmax_sample(hidden, weights, bias, key, *, soft_cap=None, temperature=1.0) -> Array:
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
    value_checks.check_key("key", key)
    softmax.check_softmax((hidden, weights, bias))
    shaping = Shaping.from_options(soft_cap, temperature, hidden.shape[:-1])
    words = vocabulary_pass((hidden, weights, bias), shaping, key=key).sample
    assert words is not None  # of a key
    return words.reshape(hidden.shape[:-1])
