"""The hierarchical softmax in two levels: a class, then a word of the class.

Goodman, "Classes for fast maximum entropy training" (2001); Morin and Bengio (2005). Words sorted
by frequency are cut into C classes of M words each (the last may be smaller):

    p(x | h) = softmax(R h + r)_c(x)  softmax(W_c(x) h + b_c(x))_x

A token costs C + M scores instead of V, about 2 sqrt(V) if C is near sqrt(V). It reads the M rows
of W of its class, so rows are gathered by blocks of tokens.
"""

import jax
import jax.numpy as jnp

from zoo.base.arrays import products, row_blocks, row_lookup, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array
from zoo.losses import softmax, token_blocks, top_k, value_checks

# Numbers of W gathered at a time: 64 MiB in float32. With 800,000 words and D = 512, these are 36
# tokens, enough to keep a core busy between the steps of a loop.
GATHERED_AT_A_TIME = 16 * 1024 * 1024


def token_block(tokens: int, size: int, width: int) -> int:
    """Returns the number of tokens in a block, each of which gathers rows of W [size, width]."""
    return row_blocks.even_block(tokens, GATHERED_AT_A_TIME // (size * width))


def _within_log_probs(weights, bias, hidden, classes, vocabulary):
    """Computes log softmax(W_c h + b_c) over the slots of each token's class c, [..., M], nats;
    -inf in a slot without a word."""
    gathered = row_lookup.take(weights, classes), row_lookup.take(bias, classes)
    return _gathered_log_probs(*gathered, hidden, classes, vocabulary)


def _gathered_log_probs(weights, bias, hidden, classes, vocabulary):
    """Computes `_within_log_probs` from rows gathered for tokens: weights [..., M, D], bias [...,
    M]."""
    scores = products.einsum("...md,...d->...m", weights, hidden)
    size = scores.shape[-1]
    slots = jax.lax.broadcasted_iota(classes.dtype, scores.shape, scores.ndim - 1)
    has_word = classes[..., None] * size + slots < vocabulary
    return jax.nn.log_softmax(jnp.where(has_word, scores + bias, -jnp.inf), axis=-1)


def _block_loss(params, vocabulary, h, data, u):
    """Returns a block's (losses [n], function that adds their gradients): see `token_blocks`.

    Gradients are added to the rows of the tokens' classes alone. The automatic derivative of a loop
    would add a gradient of all of W, mostly zeros, for each block.
    """
    (weights, bias), (c, slots) = params, data
    w = row_lookup.take(weights, c)
    log_probs = _gathered_log_probs(w, row_lookup.take(bias, c), h, c, vocabulary)

    def gradients(sums):
        scores = softmax.expected_minus_observed(jnp.exp(log_probs) * u[:, None], slots, u)
        scores = token_blocks.zero_padding_rows(scores, u)
        rows = scores[..., None] * h[:, None].astype(scores.dtype), scores
        sums = jax.tree.map(
            lambda total, part: total.at[c].add(part.astype(total.dtype)), sums, rows
        )
        return sums, products.einsum("nm,nmd->nd", scores, w)

    return -jnp.take_along_axis(log_probs, slots[:, None], axis=-1)[:, 0], gradients


# ---------------------------------------------------------------- the two levels together


@over_tokens("hidden")
def hierarchical_loss(
    hidden: Array,
    class_weights: Array,
    class_bias: Array,
    weights: Array,
    bias: Array,
    ranks: Array,
    vocabulary: int,
) -> Array:
    """Computes -log softmax(R h + r)_c(x) softmax(W_c(x) h + b_c(x))_x, exactly.

    Args:
      hidden: h, [..., D].
      class_weights: R, [C, D].
      class_bias: r, [C].
      weights: W, [C, M, D].
      bias: b, [C, M].
      ranks: the words x: int [...], each in [0, V). Word x is in slot x mod M of class x // M.
      vocabulary: V, more than (C - 1) M and at most C M. Slots beyond it hold no word.

    Returns:
      [...], nats. Rows of W are gathered by blocks of tokens, at most GATHERED_AT_A_TIME numbers at
      a time, forward and backward.

    Raises:
      ValueError: shapes do not agree. TypeError: ranks are not whole numbers.

    Example:
      >>> table = jnp.zeros((2, 4)), jnp.zeros(2), jnp.zeros((2, 4, 4)), jnp.zeros((2, 4))
      >>> loss = losses.hierarchical_loss(jnp.ones((2, 4)), *table, jnp.array([1, 4]), 6)
      >>> print(jnp.exp(-loss).round(4))  # one word of four in a class, and one of two
      [0.125 0.25 ]

    Source: Goodman (2001); Morin and Bengio (2005).
    """
    _check(hidden, (class_weights, class_bias, weights, bias), vocabulary, ranks=(ranks, "..."))
    value_checks.check_ids(vocabulary, ranks=ranks)
    classes, slots = jnp.divmod(jnp.asarray(ranks, jnp.int32), bias.shape[1])
    class_losses, _ = softmax.softmax_loss(hidden, class_weights, class_bias, classes)
    class_losses = value_checks.nan_where_invalid(class_losses, vocabulary, ranks)
    block = token_block(ranks.size, *weights.shape[1:])
    # Watched lookups are recorded when they are traced: they cannot be in a loop.
    grid = sharded_functions.grid((hidden, weights))
    if isinstance(weights, row_lookup.Watched) or (block == ranks.size and grid == (1, 1)):
        within = _within_log_probs(weights, bias, hidden, classes, vocabulary)
        return class_losses - jnp.take_along_axis(within, slots[..., None], axis=-1)[..., 0]
    flat = hidden.reshape(-1, hidden.shape[-1]), classes.reshape(-1), slots.reshape(-1)

    def run_losses(run, tokens, params):
        """Computes losses from a run of classes, 0 for tokens of other classes."""
        (h, c, slots), (classes, size) = tokens, params[1].shape
        c, is_here = sharded_functions.rows_here(c, run, classes)
        shared, data = (params, vocabulary - run * classes * size), (h, (c, slots))
        return jnp.where(is_here, token_blocks.blocked_losses(_block_loss, block, shared, data), 0)

    word_losses = sharded_functions.over_grid(grid, run_losses, flat, (weights, bias)).sum(axis=0)
    return class_losses + word_losses.reshape(ranks.shape)


@over_tokens("hidden")
def hierarchical_log_probs(
    hidden: Array,
    class_weights: Array,
    class_bias: Array,
    weights: Array,
    bias: Array,
    vocabulary: int,
) -> Array:
    """Computes log p of every word, in the order of ranks.

    Args:
      hidden, class_weights, class_bias, weights, bias, vocabulary: see `hierarchical_loss`.

    Returns:
      [..., C M], nats; -inf in the slots beyond V, which hold no word.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> table = jnp.zeros((2, 4)), jnp.zeros(2), jnp.zeros((2, 2, 4)), jnp.zeros((2, 2))
      >>> print(jnp.exp(losses.hierarchical_log_probs(jnp.ones(4), *table, 3)).round(4))
      [0.25 0.25 0.5  0.  ]

    Source: Goodman (2001); Morin and Bengio (2005).
    """
    _check(hidden, (class_weights, class_bias, weights, bias), vocabulary)
    count, size, width = weights.shape
    scores = softmax.logits(hidden, weights.reshape(count * size, width), bias.reshape(-1))
    has_word = jnp.arange(count * size) < vocabulary
    scores = jnp.where(jnp.broadcast_to(has_word, scores.shape), scores, -jnp.inf)
    within = jax.nn.log_softmax(scores.reshape(*hidden.shape[:-1], count, size), axis=-1)
    joint = _log_class_probs(hidden, class_weights, class_bias)[..., None] + within
    return joint.reshape(*hidden.shape[:-1], -1)


@over_tokens("hidden")
def hierarchical_sample(hidden, class_weights, class_bias, weights, bias, vocabulary, key) -> Array:
    """Draws words from the hierarchical softmax: a class, then one of its words.

    Args:
      hidden, class_weights, class_bias, weights, bias, vocabulary: see `hierarchical_loss`.
      key: a key of `jax.random`.

    Returns:
      Ranks of words, int32 [...].

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> class_bias, bias = jnp.array([0.0, 90.0]), jnp.zeros((2, 2))  # the second has all mass
      >>> table = jnp.zeros((2, 4)), class_bias, jnp.zeros((2, 2, 4)), bias
      >>> print(losses.hierarchical_sample(jnp.ones((2, 4)), *table, 3, jax.random.key(0)))
      [2 2]

    Source: Goodman (2001); Morin and Bengio (2005).
    """
    value_checks.check_key("key", key)
    _check(hidden, (class_weights, class_bias, weights, bias), vocabulary)
    class_key, word_key = jax.random.split(key)
    log_class_probs = _log_class_probs(hidden, class_weights, class_bias)
    classes = jax.random.categorical(class_key, log_class_probs).astype(jnp.int32)

    def block_log_probs(rows):
        return _within_log_probs(weights, bias, rows[0], rows[1], vocabulary)

    flat = hidden.reshape(-1, hidden.shape[-1]), classes.reshape(-1)
    block = token_block(flat[1].shape[0], *weights.shape[1:])
    within = row_blocks.map_rows(block_log_probs, flat, block)
    slots = jax.random.categorical(word_key, within).reshape(classes.shape)
    return classes * bias.shape[1] + slots.astype(jnp.int32)


@over_tokens("hidden")
def hierarchical_top_k(
    hidden: Array,
    class_weights: Array,
    class_bias: Array,
    weights: Array,
    bias: Array,
    vocabulary: int,
    k: int,
) -> tuple[Array, Array]:
    """Finds the k most probable words of the hierarchical softmax, by blocks of classes.

    Args:
      hidden, class_weights, class_bias, weights, bias, vocabulary: see `hierarchical_loss`.
      k: the number of words, at most V.

    Returns:
      (log-probabilities [..., k], nats; ranks of words, int32 [..., k]), best first.

    Raises:
      ValueError: shapes do not agree, or k is not from 1 to V. TypeError: k is an array.

    Example:
      >>> table = jnp.zeros((2, 4)), jnp.zeros(2), jnp.zeros((2, 2, 4)), jnp.zeros((2, 2))
      >>> log_probs, ranks = losses.hierarchical_top_k(jnp.ones(4), *table, 3, 2)
      >>> print(ranks, jnp.exp(log_probs).round(2))
      [2 0] [0.5  0.25]

    Source: Goodman (2001); Morin and Bengio (2005).
    """
    _check(hidden, (class_weights, class_bias, weights, bias), vocabulary)
    top_k.check_k(k, vocabulary)
    flat, (count, size) = hidden.reshape(-1, hidden.shape[-1]), bias.shape
    arrays = flat, class_weights, class_bias, weights, bias
    flat, class_weights, class_bias, weights, bias = vary_together(arrays)
    flat = as_wide(flat, class_weights, class_bias, weights, bias)
    tokens, dtype = flat.shape[0], accumulator(flat)
    block = softmax.vocabulary_block(tokens, count * size, flat.shape[1])
    blocks = row_blocks.RowBlocks.from_size(count, max(1, block // size))
    classes = sharded_functions.zeros(tokens, jnp.int32, flat)  # any: for log Z alone
    _, log_z = softmax.softmax_loss(flat, class_weights, class_bias, classes)

    def step(best_words, number):
        classes = blocks.row_numbers(number).astype(jnp.int32)
        class_table = blocks.take(number, class_weights), blocks.take(number, class_bias)
        class_log_probs = softmax.logits(flat, *class_table) - log_z[:, None]
        class_log_probs = blocks.masked(number, class_log_probs, -jnp.inf)
        ranks = classes[:, None] * size + jnp.arange(size, dtype=jnp.int32)[None]
        scores = products.einsum("nd,cmd->ncm", flat, blocks.take(number, weights))
        scores += blocks.take(number, bias)[None].astype(dtype)
        has_word = jnp.broadcast_to((ranks < vocabulary)[None], scores.shape)
        scores = jnp.where(has_word, scores, -jnp.inf)
        joint = class_log_probs[..., None] + jax.nn.log_softmax(scores, axis=-1)
        values, columns = jax.lax.top_k(joint.reshape(tokens, ranks.size), min(k, ranks.size))
        slot_classes = jnp.broadcast_to(blocks.masked(number, classes, count)[:, None], ranks.shape)
        words = jnp.where(slot_classes < count, ranks, count * size).ravel()[columns]
        return top_k.select_best(k, best_words, (values, words)), None

    initial = (
        sharded_functions.filled((tokens, k), -jnp.inf, dtype, flat),
        sharded_functions.filled((tokens, k), count * size, jnp.int32, flat),
    )
    (log_probs, ranks), _ = jax.lax.scan(step, initial, blocks.numbers())
    shape = (*hidden.shape[:-1], k)
    return log_probs.reshape(shape), ranks.reshape(shape)


def _log_class_probs(hidden, weights, bias):
    """Computes log softmax(R h + r) of all classes, [..., C], nats."""
    return jax.nn.log_softmax(softmax.logits(hidden, weights, bias), axis=-1)


def _check(hidden, table, vocabulary, **token_arrays):
    """Raises ValueError unless shapes agree and (C - 1) M < vocabulary <= C M; `token_arrays`, of
    integers, are name=(array, axes)."""
    class_weights, class_bias, weights, bias = table
    value_checks.check_shapes(
        hidden=(hidden, "... D"),
        class_weights=(class_weights, "C D"),
        class_bias=(class_bias, "C"),
        weights=(weights, "C M D"),
        bias=(bias, "C M"),
        **token_arrays,
        integers=token_arrays.keys(),
    )
    count, size = bias.shape
    if not (count - 1) * size < vocabulary <= count * size:
        raise ValueError(
            f"vocabulary is {vocabulary:,}, and {count:,} classes of {size:,} words are for "
            f"{(count - 1) * size + 1:,} to {count * size:,} words: give the number of words that "
            "the weights were made for"
        )
