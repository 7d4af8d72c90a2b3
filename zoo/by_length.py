"""Work on spellings at a cost that follows their lengths, not the length of the longest.

The shapes of a compiled program are fixed, so a batch of spellings [N, L] is as wide as the longest
word can be, and most of it is filling. `map_by_length` sorts the spellings, longest first, takes
them in blocks, and computes each block in the narrowest of a few widths that holds it; a block
without any spelling is not computed at all. The widths grow by half, so that less than a third of
the work is filling.
"""

import functools

import jax
import jax.numpy as jnp

# Spellings computed together: enough for efficient products, few enough that lengths are alike.
BLOCK = 128
NARROWEST = 8


def widths(longest: int, least: int = 1) -> list[int]:
    """8, 12, 18 ... and `longest`; none below `least`, none that would save less than a fifth."""
    found, width = [], max(NARROWEST, least)
    while width <= 0.8 * longest:
        found.append(width)
        width += width // 2
    return [*found, longest]


def map_by_length(function, params, letters, lengths, others=(), *, least=1, count=None):
    """function(params, letters, lengths, *others) for N spellings, cut to what they need.

    Args:
      function: (params, letters [n, l], lengths [n], *others [n, ...]) -> [n, ...], row by row, the
        same for every l >= lengths.
      letters: int [N, L]; lengths: int [N]; others: a tuple of [N, ...].
      least: l is at least that. count: only the first so many spellings are computed, a scalar;
        the others give 0. All of them if None.

    Returns:
      [N, ...]. Its gradients compute each block once more instead of keeping what is between.
    """
    number, longest = letters.shape
    block = min(BLOCK, number)
    if count is not None:
        lengths = jnp.where(jnp.arange(number) < count, lengths, 0)
    order = jnp.argsort(-lengths)
    filled = jnp.concatenate([order, jnp.repeat(order[-1:], -number % block)])
    blocks = jax.tree.map(
        lambda x: jnp.asarray(x)[filled].reshape(-1, block, *x.shape[1:]),
        (letters, lengths, *others),
    )
    of_widths = jnp.asarray(widths(longest, least))
    result = jax.eval_shape(function, params, *jax.tree.map(lambda x: x[0], blocks))

    def nothing(params, *block):
        return jnp.zeros(result.shape, result.dtype)

    def cut(width, params, letters, *rest):
        return function(params, letters[:, :width], *rest)

    branches = [nothing, *(functools.partial(cut, int(w)) for w in widths(longest, least))]

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def compute(params, block):
        most = block[1].max()
        chosen = jnp.where(most == 0, 0, 1 + jnp.searchsorted(of_widths, most))
        return jax.lax.switch(chosen, branches, params, *block)

    _, results = jax.lax.scan(lambda _, block: (None, compute(params, block)), None, blocks)
    results = results.reshape(-1, *result.shape[1:])
    return results[jnp.zeros_like(order).at[order].set(jnp.arange(number))]
