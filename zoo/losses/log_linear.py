"""Log-linear models: words as sets of features over a background.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 2. With the adaptor a = W h + c over F
features,

    p(x | h) = b(x) exp(a . phi(x)) / sum_v b(v) exp(a . phi(v)).

phi is given as an array here. Classes may be words or sets of words with the same features; b of a
set is the sum over its words, and p(x | h) = p(class | h) b(x) / b(class). Losses of a sparse phi
are below.
"""

import jax
import jax.numpy as jnp

from zoo.base.arrays import precision, products, row_blocks, sharded_functions, sparse_products
from zoo.base.arrays.sharded_functions import replicate_rows
from zoo.base.arrays.types import Array, Real, Tables
from zoo.losses import softmax, token_blocks, value_checks


def log_linear_weights(
    features: Array, log_background: Array, weights: Array, bias: Array
) -> tuple[Array, Array]:
    """Computes the weights and bias of the equivalent softmax: phi W and phi c + log b.

    All functions of the softmax take them: `weighted_softmax_loss`, `softmax_top_k` and so on.

    Args:
      features: phi, [V, F].
      log_background: log b, [V], nats, up to a constant.
      weights: W, the vectors of the features, [F, D].
      bias: c, [F].

    Returns:
      (weights [V, D], bias [V]), in at least float32.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> phi = jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
      >>> vectors, bias = losses.log_linear_weights(phi, jnp.zeros(3), jnp.eye(2), jnp.ones(2))
      >>> print(vectors[1], bias)
      [1. 1.] [1. 2. 1.]

    Source: Dymetman and Xiao (2016), section 2.
    """
    value_checks.check_shapes(
        features=(features, "V F"),
        log_background=(log_background, "V"),
        weights=(weights, "F D"),
        bias=(bias, "F"),
    )
    sums = products.matmul(features, bias)
    return products.matmul(features, weights), sums + log_background.astype(sums.dtype)


@sharded_functions.over_tokens("hidden")
def log_linear_loss(
    hidden: Array,
    features: Array,
    log_background: Array,
    weights: Array,
    bias: Array,
    targets: Array,
) -> tuple[Array, Array]:
    """Computes -log b(x) exp(a . phi(x)) + log Z, a = W h + c, Z = sum_v b(v) exp(a . phi(v)).

    Its gradient with respect to a is the expected minus the observed features (equation 9).

    Args:
      hidden: h, [..., D].
      features, log_background, weights, bias: see `log_linear_weights`.
      targets: x, int [...], each in [0, V).

    Returns:
      (loss [...], log Z [...]), nats, exact; no array [tokens, V] is formed.

    Raises:
      ValueError: shapes do not agree. TypeError: targets are not whole numbers.

    Example:
      >>> phi, background = jnp.array([[1.0], [0.0], [0.0]]), jnp.log(jnp.array([0.2, 0.5, 0.3]))
      >>> adaptor = jnp.zeros((1, 4)), jnp.log(jnp.array([5.0]))
      >>> arguments = jnp.ones((1, 4)), phi, background, *adaptor, jnp.array([0])
      >>> loss, log_z = losses.log_linear_loss(*arguments)
      >>> print(jnp.exp(log_z).round(3), jnp.exp(-loss).round(3))  # 5 x 0.2 + 0.5 + 0.3; 1 / 1.8
      [1.8] [0.556]

    Source: Dymetman and Xiao (2016), section 2, equations 11 to 14.
    """
    vectors, biases = log_linear_weights(features, log_background, weights, bias)
    return softmax.softmax_loss(hidden, vectors, biases, targets)


def log_linear_log_probs(adaptor: Array, features: Array, log_background: Array) -> Array:
    """Computes log b(v) + a . phi(v) - log Z of all words, by the definition.

    Args:
      adaptor: a, [..., F].
      features, log_background: see `log_linear_weights`.

    Returns:
      [..., V], nats.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> phi, background = jnp.array([[1.0], [0.0]]), jnp.log(jnp.array([0.25, 0.75]))
      >>> print(jnp.exp(losses.log_linear_log_probs(jnp.log(jnp.array([3.0])), phi, background)))
      [0.5 0.5]

    Source: Dymetman and Xiao (2016), equation 12.
    """
    value_checks.check_shapes(
        adaptor=(adaptor, "... F"), features=(features, "V F"), log_background=(log_background, "V")
    )
    return jax.nn.log_softmax(softmax.logits(adaptor, features, log_background), axis=-1)


@sharded_functions.over_tokens("hidden")
def adaptor_penalty(
    hidden: Array, weights: Array, bias: Array, penalty: Real, norm: Real = 2.0
) -> Array:
    """Computes penalty sum_f |a_f|^norm, which draws the adaptor a = W h + c to 0.

    Args:
      hidden: h, [..., D].
      weights, bias: see `log_linear_weights`.
      penalty: nats per unit of |a|^norm, at least 0.
      norm: the exponent, at least 1.

    Returns:
      [...], nats. Adaptors are computed by blocks of tokens, forward and backward.

    Raises:
      ValueError: shapes do not agree, or the penalty or the norm is too small.

    Example:
      >>> table = jnp.zeros((2, 4)), jnp.array([3.0, -4.0])
      >>> print(losses.adaptor_penalty(jnp.ones((1, 4)), *table, 0.1))
      [2.5]

    Source: Dymetman and Xiao (2016), section 2.2.
    """
    value_checks.check_shapes(hidden=(hidden, "... D"), weights=(weights, "F D"), bias=(bias, "F"))
    value_checks.check_least(0, "at least 0", penalty=penalty)
    value_checks.check_least(1, "at least 1", norm=norm)

    # Recomputed in the backward pass: the adaptors of all tokens would be [tokens, F].
    @jax.checkpoint
    def block_penalties(rows):
        adaptors = softmax.logits(rows[0], weights, bias)
        adaptors *= jnp.sign(adaptors)  # has the slope 0 at 0, where jnp.abs has 1
        return penalty * jnp.sum(adaptors**norm, axis=-1)

    flat = hidden.reshape(-1, hidden.shape[-1])
    block = softmax.token_block(flat.shape[0], len(bias))
    return row_blocks.map_rows(block_penalties, (flat,), block).reshape(hidden.shape[:-1])


def log_expert_mass(log_prob: Array, weight: Array) -> Array:
    """Computes log(1 - p + p exp(g)), the term that a feature of one word adds to log Z.

    With p' proportional to p exp(g [x = e]), log p'(x) = log p(x) + g [x = e] minus this term of
    p(e).

    Args:
      log_prob: log p(e), [...], nats.
      weight: g, [...], nats.

    Returns:
      [...], nats; finite, and so is its gradient, for every p from 0 to 1.

    Raises:
      ValueError: shapes do not agree, or a log p is above 0.

    Example:
      >>> print(jnp.exp(losses.log_expert_mass(jnp.log(0.5), jnp.log(3.0))).round(3))
      2.0

    Source: Dymetman and Xiao (2016), section 6, "expert feature".
    """
    value_checks.check_shapes(log_prob=(log_prob, "..."), weight=(weight, "..."))
    value_checks.check_log_probs(log_prob=log_prob)
    # p stays one rounding below 1, so that log(1 - p) and its gradient are finite.
    log_rest = jnp.log1p(-jnp.exp(jnp.minimum(log_prob, -jnp.finfo(log_prob.dtype).eps)))
    return jnp.logaddexp(log_rest, log_prob + weight)


# --------- softmax losses over signatures whose scores are a sparse product of the adaptor
# If words have many features each (letter n-grams), there are about as many signatures as words,
# and to compute a weight vector for each signature, sum_f phi_sf W_f, would cost more than a
# softmax's matrix product. Instead, the scores of N tokens are computed from their adaptors,
#
#     o = phi A^T + log B,    A = H W^T + c,  [N, F],
#
# by blocks of tokens. This takes a product with F columns, F being much less than S, and a sum of
# one row for each feature of a signature. phi stays sparse, forward and backward (see
# zoo.base.arrays.sparse_products).

# A gather reads the scores of this many tokens at a time, 64 floats; fewer if the scores of all
# signatures would not stay in cache, but at least 16.
MOST_TOKENS, LEAST_TOKENS = 64, 16


def token_block(tokens: int, signatures: int) -> int:
    """Returns the number of tokens in a block, for which the scores of all signatures are held."""
    limit = max(LEAST_TOKENS, min(MOST_TOKENS, softmax.LOGITS_AT_A_TIME // signatures))
    return row_blocks.even_block(tokens, limit)


def signature_scores(tables: Tables, weights: Array, bias: Array, hidden: Array) -> Array:
    """Computes the scores o of all signatures, [S, N], with a column for each token, nats."""
    adaptors = softmax.logits(hidden, weights, bias).T
    sums = sparse_products.product(tables["of_signature"], tables["of_feature"], adaptors)
    return sums + tables["log_mass"].astype(sums.dtype)[:, None]


@sharded_functions.over_tokens("hidden")
def sparse_log_linear_loss(
    tables: Tables, weights: Array, bias: Array, hidden: Array, signatures: Array
) -> tuple[Array, Array]:
    """Computes log Z - o_s, o = phi (W h + c) + log B, of a sparse phi.

    Args:
      tables: "of_signature", "of_feature": the levels of phi, [S, F], and of its transpose, see
        `zoo.base.arrays.sparse_products.levels`; "log_mass": log B, [S], nats.
      weights: W, the vectors of the features, [F, D].
      bias: c, [F].
      hidden: h, [..., D].
      signatures: s, int [...], each in [0, S).

    Returns:
      (loss [...], log Z [...]), nats. Memory beside arguments and results: S scores for each token
      of a block, see `token_block`, forward and backward.

    Raises:
      ValueError: shapes do not agree. TypeError: signatures are not whole numbers.

    Example:
      >>> from zoo.base.arrays import sparse_products as sparse
      >>> rows, columns, ones = np.array([0, 1]), np.array([0, 1]), np.ones(2)
      >>> phi = sparse.levels(rows, columns, ones, 3)  # the third signature has no features
      >>> transpose = sparse.levels(columns, rows, ones, 2)
      >>> tables = {"of_signature": phi, "of_feature": transpose, "log_mass": jnp.zeros(3)}
      >>> table = tables, jnp.zeros((2, 4)), jnp.zeros(2)
      >>> loss, _ = losses.sparse_log_linear_loss(*table, jnp.ones((1, 4)), jnp.array([2]))
      >>> print(jnp.exp(-loss).round(3))
      [0.333]

    Source: Dymetman and Xiao (2016), section 2.
    """

    # Recomputed in the backward pass, block by block, rather than kept for all tokens.
    @jax.checkpoint
    def block_losses(rows):
        h, s = rows
        scores = signature_scores(tables, weights, bias, h)
        log_z = jax.nn.logsumexp(scores, axis=0)
        return log_z - jnp.take_along_axis(scores, s[None], axis=0)[0], log_z

    _check(tables, weights, bias, hidden, signatures=(signatures, "..."))
    value_checks.check_ids(len(tables["log_mass"]), signatures=signatures)
    weights, bias, tables = jax.tree.map(replicate_rows, (weights, bias, tables))
    shape = signatures.shape
    hidden, signatures = hidden.reshape(-1, hidden.shape[-1]), signatures.reshape(-1)
    block = token_block(signatures.shape[0], len(tables["log_mass"]))
    loss, log_z = row_blocks.map_rows(block_losses, (hidden, signatures), block)
    loss = value_checks.nan_where_invalid(loss, len(tables["log_mass"]), signatures)
    return loss.reshape(shape), log_z.reshape(shape)


@sharded_functions.over_tokens("hidden")
def weighted_sparse_log_linear_loss(
    tables: Tables,
    weights: Array,
    bias: Array,
    hidden: Array,
    signatures: Array,
    token_weights: Array,
) -> Array:
    """Computes sum_n u_n loss_n of `sparse_log_linear_loss`, and its gradients in the same pass.

    Args:
      tables, weights, bias, hidden, signatures: see `sparse_log_linear_loss`.
      token_weights: u, [...]; 0 for padding, whose hidden states and signatures may be anything.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree. TypeError: signatures are not whole numbers.

    Example:
      >>> from zoo.base.arrays import sparse_products as sparse
      >>> rows, columns, ones = np.array([0, 1]), np.array([0, 1]), np.ones(2)
      >>> phi = sparse.levels(rows, columns, ones, 3)  # the third signature has no features
      >>> transpose = sparse.levels(columns, rows, ones, 2)
      >>> tables = {"of_signature": phi, "of_feature": transpose, "log_mass": jnp.zeros(3)}
      >>> table = tables, jnp.zeros((2, 4)), jnp.zeros(2), jnp.ones((2, 4))
      >>> u = jnp.array([2.0, 0.0])
      >>> loss = losses.weighted_sparse_log_linear_loss(*table, jnp.array([2, 0]), u)
      >>> print(f"{loss:.4f}", f"{2 * jnp.log(3):.4f}")
      2.1972 2.1972

    Source: Dymetman and Xiao (2016), section 2.
    """
    token_arrays = {"signatures": (signatures, "..."), "token_weights": (token_weights, "...")}
    _check(tables, weights, bias, hidden, **token_arrays)
    value_checks.check_ids(len(tables["log_mass"]), token_weights, signatures=signatures)
    weights, bias, tables = jax.tree.map(replicate_rows, (weights, bias, tables))
    hidden = hidden.reshape(-1, hidden.shape[-1])
    signatures = signatures.reshape(-1)
    hidden, token_weights = token_blocks.zero_padding_states(hidden, token_weights.reshape(-1))
    words = len(tables["log_mass"])
    block = token_block(signatures.shape[0], words)
    shared, tokens = ((weights, bias), tables), (hidden, signatures)
    (loss,) = token_blocks.weighted_loss(_block_loss, block, shared, tokens, token_weights)
    return value_checks.nan_where_invalid(loss, words, signatures, token_weights)


def _block_loss(params, tables, h, s, u):
    """Returns a block's (losses [n], function that adds their gradients): see `token_blocks`."""
    weights, bias = params
    block_scores = signature_scores(tables, weights, bias, h)
    largest = block_scores.max(axis=0)
    exponentials = jnp.exp(block_scores - largest[None])
    z = exponentials.sum(axis=0)
    target_scores = jnp.take_along_axis(block_scores, s[None], axis=0)[0]

    def gradients(sums):
        score_gradients = _subtract_observed(exponentials * (u / z)[None], s, u)
        score_gradients = jnp.where(u[None] == 0, 0, score_gradients)  # columns are tokens
        adaptor_gradients = sparse_products.product(
            tables["of_feature"], tables["of_signature"], score_gradients
        )
        bias_gradient = adaptor_gradients.sum(axis=1)
        adaptor_gradients = precision.rounded_as(adaptor_gradients, weights)
        hidden_gradient = products.einsum("fn,fd->nd", adaptor_gradients, weights)
        weights_gradient = products.matmul(adaptor_gradients, h)
        return token_blocks.add_gradients(sums, (weights_gradient, bias_gradient)), hidden_gradient

    return largest + jnp.log(z) - target_scores, gradients


def _subtract_observed(expected, signatures, observed):
    """Subtracts observed[j] from expected[signatures[j], j] in each column j of expected [S, n]."""
    if (
        sharded_functions.automatic_devices(expected) > 1
    ):  # where a scatter would send all of expected
        return softmax.expected_minus_observed(expected.T, signatures, observed).T
    # Twice as fast in all on one device: later steps read the slopes instead of recomputing them.
    return expected.at[signatures, jnp.arange(len(observed))].add(-observed.astype(expected.dtype))


def _check(tables, weights, bias, hidden, **token_arrays):
    """Raises ValueError unless shapes agree (tables are not checked), TypeError unless signatures
    are integers; `token_arrays` are name=(array, axes)."""
    value_checks.check_shapes(
        weights=(weights, "F D"),
        bias=(bias, "F"),
        hidden=(hidden, "... D"),
        **token_arrays,
        integers=token_arrays.keys() & {"signatures"},
    )


@sharded_functions.over_tokens("hidden")
def sparse_log_linear_log_probs(
    tables: Tables, weights: Array, bias: Array, hidden: Array
) -> Array:
    """Computes log p of each signature of a sparse phi.

    Args:
      tables, weights, bias, hidden: see `sparse_log_linear_loss`.

    Returns:
      [..., S], nats.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> from zoo.base.arrays import sparse_products as sparse
      >>> rows, columns, ones = np.array([0, 1]), np.array([0, 1]), np.ones(2)
      >>> phi = sparse.levels(rows, columns, ones, 3)  # the third signature has no features
      >>> transpose = sparse.levels(columns, rows, ones, 2)
      >>> tables = {"of_signature": phi, "of_feature": transpose, "log_mass": jnp.zeros(3)}
      >>> table = tables, jnp.zeros((2, 4)), jnp.log(jnp.array([2.0, 1.0]))
      >>> print(jnp.exp(losses.sparse_log_linear_log_probs(*table, jnp.ones(4))).round(3))
      [0.5  0.25 0.25]

    Source: Dymetman and Xiao (2016), section 2.
    """
    _check(tables, weights, bias, hidden)
    weights, bias, tables = jax.tree.map(replicate_rows, (weights, bias, tables))

    def block_log_probs(rows):
        return jax.nn.log_softmax(signature_scores(tables, weights, bias, *rows), axis=0).T

    flat = hidden.reshape(-1, hidden.shape[-1])
    block = token_block(flat.shape[0], len(tables["log_mass"]))
    return row_blocks.map_rows(block_log_probs, (flat,), block).reshape(*hidden.shape[:-1], -1)
