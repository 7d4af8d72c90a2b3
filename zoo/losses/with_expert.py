"""A further feature in a normalised model, which is 1 on an expert's word and 0 on all others."""

import jax.numpy as jnp

from zoo.losses import value_checks
from zoo.losses.value_checks import check_shapes


def log_expert_mass(log_prob, weight):
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
    check_shapes(log_prob=(log_prob, "..."), weight=(weight, "..."))
    value_checks.check_log_probs(log_prob=log_prob)
    # p stays one rounding below 1, so that log(1 - p) and its gradient are finite.
    most = -jnp.finfo(log_prob.dtype).eps
    rest = jnp.log1p(-jnp.exp(jnp.minimum(log_prob, most)))
    return jnp.logaddexp(rest, log_prob + weight)
