"""Log-linear models: words as sets of features over a background.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 2. With the adaptor a = W h + c over F
features,

    p(x | h) = b(x) exp(a . phi(x)) / sum_v b(v) exp(a . phi(v)).

phi is given as an array here. Classes may be words or sets of words with the same features; b of a
set is the sum over its words, and p(x | h) = p(class | h) b(x) / b(class). For a sparse phi, see
`zoo.losses.feature_scores`.
"""

import jax
import jax.numpy as jnp

from zoo.arrays import products, row_blocks
from zoo.arrays.sharded_functions import over_tokens
from zoo.losses import softmax, value_checks
from zoo.losses.shape_checks import check_shapes


def log_linear_weights(features, log_background, weights, bias):
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
    check_shapes(
        features=(features, "V F"),
        log_background=(log_background, "V"),
        weights=(weights, "F D"),
        bias=(bias, "F"),
    )
    sums = products.matmul(features, bias)
    return products.matmul(features, weights), sums + log_background.astype(sums.dtype)


@over_tokens("hidden")
def log_linear_loss(hidden, features, log_background, weights, bias, targets):
    """Computes -log b(x) exp(a . phi(x)) + log Z, a = W h + c, Z = sum_v b(v) exp(a . phi(v)).

    Its gradient with respect to a is the expected minus the observed features (equation 9).

    Args:
      hidden: h, [..., D].
      features: phi, [V, F].
      log_background: log b, [V], nats, up to a constant.
      weights: W, the vectors of the features, [F, D].
      bias: c, [F].
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


def log_linear_log_probs(adaptor, features, log_background):
    """Computes log b(v) + a . phi(v) - log Z of all words, by the definition.

    Args:
      adaptor: a, [..., F].
      features: phi, [V, F].
      log_background: log b, [V], nats, up to a constant.

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
    check_shapes(
        adaptor=(adaptor, "... F"), features=(features, "V F"), log_background=(log_background, "V")
    )
    return jax.nn.log_softmax(softmax.logits(adaptor, features, log_background), axis=-1)


@over_tokens("hidden")
def adaptor_penalty(hidden, weights, bias, penalty, norm=2.0):
    """Computes penalty sum_f |a_f|^norm, which draws the adaptor a = W h + c to 0.

    Args:
      hidden: h, [..., D].
      weights: W, the vectors of the features, [F, D].
      bias: c, [F].
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
    check_shapes(hidden=(hidden, "... D"), weights=(weights, "F D"), bias=(bias, "F"))
    value_checks.check_least(0, "at least 0", penalty=penalty)
    value_checks.check_least(1, "at least 1", norm=norm)

    # Recomputed in the backward pass: the adaptors of all tokens would be [tokens, F].
    @jax.checkpoint
    def of_block(columns):
        (states,) = columns
        adaptors = softmax.logits(states, weights, bias)
        adaptors *= jnp.sign(adaptors)  # has the slope 0 at 0, where jnp.abs has 1
        return penalty * jnp.sum(adaptors**norm, axis=-1)

    rows = hidden.reshape(-1, hidden.shape[-1])
    block = softmax.token_block(rows.shape[0], len(bias))
    return row_blocks.map_rows(of_block, (rows,), block).reshape(hidden.shape[:-1])
