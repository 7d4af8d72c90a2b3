"""Softmax losses over signatures whose scores are a sparse product of the adaptor.

If words have many features each (letter n-grams), there are about as many signatures as words, and
to compute a weight vector for each signature, sum_f phi_sf W_f, would cost more than a softmax's
matrix product. Instead, the scores of N tokens are computed from their adaptors,

    o = phi A^T + log B,    A = H W^T + c,  [N, F],

by blocks of tokens. This takes a product with F columns, F being much less than S, and a sum of one
row for each feature of a signature. phi stays sparse, forward and backward (see
zoo.arrays.sparse_products).
"""

import jax
import jax.numpy as jnp

from zoo.arrays import products, row_blocks, sharded_functions, sparse_products
from zoo.arrays.sharded_functions import over_tokens
from zoo.losses import softmax, token_blocks, value_checks
from zoo.losses.shape_checks import check_shapes
from zoo.losses.token_blocks import present_states

# A gather reads the scores of this many tokens at a time, 64 floats; fewer if the scores of all
# signatures would not stay in cache, but at least 16.
MOST_TOKENS, LEAST_TOKENS = 64, 16


def token_block(tokens: int, signatures: int) -> int:
    """Returns the number of tokens in a block."""
    most = max(LEAST_TOKENS, min(MOST_TOKENS, softmax.LOGITS_AT_A_TIME // signatures))
    return row_blocks.even(tokens, most)


def scores(tables, weights, bias, hidden):
    """Computes o of all signatures. Gives [S, N], with a column for each token, nats."""
    adaptors = softmax.logits(hidden, weights, bias).T
    sums = sparse_products.product(tables["of_signature"], tables["of_feature"], adaptors)
    return sums + tables["log_mass"].astype(sums.dtype)[:, None]


@over_tokens("hidden")
def sparse_log_linear_loss(tables, weights, bias, hidden, signatures):
    """Computes log Z - o_s, o = phi (W h + c) + log B, of a sparse phi.

    Args:
      tables: "of_signature", "of_feature": the levels of phi, [S, F], and of its transpose, see
        `zoo.arrays.sparse_products.levels`; "log_mass": log B, [S], nats.
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
      >>> from zoo.arrays import sparse_products as sparse
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
    def of_block(columns):
        block_hidden, block_signatures = columns
        block_scores = scores(tables, weights, bias, block_hidden)
        log_z = jax.nn.logsumexp(block_scores, axis=0)
        return log_z - jnp.take_along_axis(block_scores, block_signatures[None], axis=0)[0], log_z

    _check(tables, weights, bias, hidden, signatures=(signatures, "..."))
    value_checks.check_ids(len(tables["log_mass"]), signatures=signatures)
    weights, bias = map(sharded_functions.rows_whole, (weights, bias))
    shape = signatures.shape
    hidden, signatures = hidden.reshape(-1, hidden.shape[-1]), signatures.reshape(-1)
    block = token_block(signatures.shape[0], len(tables["log_mass"]))
    loss, log_z = row_blocks.map_rows(of_block, (hidden, signatures), block)
    return loss.reshape(shape), log_z.reshape(shape)


@over_tokens("hidden")
def weighted_sparse_log_linear_loss(tables, weights, bias, hidden, signatures, token_weights):
    """Computes sum_n u_n loss_n of `sparse_log_linear_loss`, and its gradients in the same pass.

    Args:
      tables: "of_signature", "of_feature": the levels of phi, [S, F], and of its transpose, see
        `zoo.arrays.sparse_products.levels`; "log_mass": log B, [S], nats.
      weights: W, the vectors of the features, [F, D].
      bias: c, [F].
      hidden: h, [..., D].
      signatures: s, int [...], each in [0, S).
      token_weights: u, [...]; 0 for padding, whose hidden states and signatures may be anything.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree. TypeError: signatures are not whole numbers.

    Example:
      >>> from zoo.arrays import sparse_products as sparse
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
    of_tokens = {"signatures": (signatures, "..."), "token_weights": (token_weights, "...")}
    _check(tables, weights, bias, hidden, **of_tokens)
    value_checks.check_ids(len(tables["log_mass"]), token_weights, signatures=signatures)
    weights, bias = map(sharded_functions.rows_whole, (weights, bias))
    hidden = hidden.reshape(-1, hidden.shape[-1])
    signatures = signatures.reshape(-1)
    hidden, token_weights = present_states(hidden, token_weights.reshape(-1))
    block = token_block(signatures.shape[0], len(tables["log_mass"]))
    return token_blocks.weighted_loss(
        _block, block, (weights, bias), tables, hidden, signatures, token_weights
    )


def _block(shared, tables, h, s, u):
    """Computes a block's losses and their gradients: see `zoo.losses.token_blocks`."""
    weights, bias = shared
    block_scores = scores(tables, weights, bias, h)
    largest = block_scores.max(axis=0)
    exponentials = jnp.exp(block_scores - largest[None])
    z = exponentials.sum(axis=0)
    target_scores = jnp.take_along_axis(block_scores, s[None], axis=0)[0]

    def gradients(sums):
        expected = exponentials * (u / z)[None]
        slopes = _less_observed(expected, s, u)
        slopes = jnp.where(u[None] == 0, 0, slopes)  # as weighted_rows; columns are tokens
        of_adaptors = sparse_products.product(tables["of_feature"], tables["of_signature"], slopes)
        bias_gradient = of_adaptors.sum(axis=1)
        of_adaptors = products.rounded_as(of_adaptors, weights)
        hidden_gradient = products.einsum("fn,fd->nd", of_adaptors, weights)
        weights_gradient = products.matmul(of_adaptors, h)
        return token_blocks.added(sums, (weights_gradient, bias_gradient)), hidden_gradient

    return largest + jnp.log(z) - target_scores, gradients


def _less_observed(expected, signatures, observed):
    """Subtracts observed [n] from expected [S, n] at each column's row in `signatures` [n]."""
    if (
        sharded_functions.automatic_devices(expected) > 1
    ):  # where a scatter would send all of expected
        return softmax.difference(expected.T, signatures, observed).T
    # Twice as fast in all on one device: later steps read the slopes instead of recomputing them.
    return expected.at[signatures, jnp.arange(len(observed))].add(-observed.astype(expected.dtype))


def _check(tables, weights, bias, hidden, **of_tokens):
    check_shapes(
        weights=(weights, "F D"),
        bias=(bias, "F"),
        hidden=(hidden, "... D"),
        **of_tokens,
        integers=of_tokens.keys() & {"signatures"},
    )


@over_tokens("hidden")
def sparse_log_linear_log_probs(tables, weights, bias, hidden):
    """Computes log p of each signature of a sparse phi.

    Args:
      tables: "of_signature", "of_feature": the levels of phi, [S, F], and of its transpose, see
        `zoo.arrays.sparse_products.levels`; "log_mass": log B, [S], nats.
      weights: W, the vectors of the features, [F, D].
      bias: c, [F].
      hidden: h, [..., D].

    Returns:
      [..., S], nats.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> from zoo.arrays import sparse_products as sparse
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
    weights, bias = map(sharded_functions.rows_whole, (weights, bias))

    def of_block(columns):
        return jax.nn.log_softmax(scores(tables, weights, bias, *columns), axis=0).T

    rows = hidden.reshape(-1, hidden.shape[-1])
    block = token_block(rows.shape[0], len(tables["log_mass"]))
    return row_blocks.map_rows(of_block, (rows,), block).reshape(*hidden.shape[:-1], -1)
