"""The expected features of a log-linear model, estimated by sampling for large vocabularies.

The gradient of -log p(x) with respect to the adaptor a is E_p[phi] - phi(x) (Dymetman and Xiao
2016, section 2.3), p being proportional to w(v) = b(v) exp(a . phi(v)). For large or infinite V,
the paper names two ways to approximate E_p[phi]. Both draw words v from a proposal q and need no Z:

    importance sampling       sum_k u_k phi(v_k), u = w(v_k) / q(v_k) divided by its sum; biased by
                              O(1 / K), consistent
    contrastive divergence    phi of the last state of a Markov chain of a few steps that starts at
                              the observed x and leaves p invariant (Hinton 2002); biased because
                              the chain still depends on x

`log_weights` are log w(v) - log q(v) in nats: a . phi(v) alone if q is the background.

To train with importance sampling, the observed x must be among the slots, with the weight
w(x) / q(x). From draws alone, u_v is at most 1, and 0 in the steps that do not draw v: the mean of
the estimate of p(v) is at most 1 - (1 - q(v))^K, about K q(v). If the data's p(v) is above that, no
score makes the gradient 0, and the score of v rises as long as training lasts. With x among the
slots, u is a posterior over them, and the expected gradient is 0 at the truth for every K: see
zoo.losses.importance.
"""

import jax
import jax.numpy as jnp

from zoo.base.arrays import sharded_functions
from zoo.base.arrays.types import Array
from zoo.losses import value_checks


def importance_weights(log_weights: Array) -> Array:
    """Computes u_k = exp(log_weights_k) / sum_j exp(log_weights_j) of K draws from q.

    sum_k u_k f(v_k) estimates E_p[f] for any f (self-normalised importance sampling).

    Args:
      log_weights: log w(v_k) - log q(v_k), [..., K], nats, up to a constant.

    Returns:
      [..., K], with the sum 1.

    Example:
      >>> print(losses.importance_weights(jnp.log(jnp.array([1.0, 3.0]))))
      [0.25 0.75]

    Source: Dymetman and Xiao (2016), section 2.3.
    """
    return jax.nn.softmax(log_weights, axis=-1)


def metropolis_choice(key: Array, log_weights: Array) -> Array:
    """Draws the slot, 0 for the observed word, in which an independence chain over draws ends.

    The chain starts at the observed word, slot 0, and proposes the draws from q in turn. Each step
    goes from its state v to the next draw v' with probability min(1, w(v') q(v) / (w(v)
    q(v'))), the rule of Hastings (1970), which leaves p invariant.

    Args:
      key: a key of `jax.random`.
      log_weights: log w(v) - log q(v), [..., 1 + n], nats, of the observed word and n draws from q.

    Returns:
      Slots in 0 ... n, int32 [...]. Contrastive divergence estimates E_p[phi] by phi of that word.

    Example:
      >>> log_weights = jnp.array([-90.0, 90.0, -90.0])  # the first draw is far more probable
      >>> print(losses.metropolis_choice(jax.random.key(0), log_weights))
      1

    Source: Hastings (1970); Hinton (2002); Dymetman and Xiao (2016), section 2.3.
    """
    thresholds = jnp.log(jax.random.uniform(key, log_weights.shape, log_weights.dtype))
    return metropolis_walk(thresholds, log_weights)


def metropolis_walk(log_thresholds: Array, log_weights: Array) -> Array:
    """Computes the slot in which the chain of `metropolis_choice` ends, given its random numbers.

    Args:
      log_thresholds: log u, [..., 1 + n], u uniform in (0, 1); the first is ignored.
      log_weights: log w(v) - log q(v), [..., 1 + n], nats, of the observed word and n draws from q.

    Returns:
      Slots in 0 ... n, int32 [...].

    Raises:
      ValueError: shapes do not agree, or a log u is above 0.

    Example:
      >>> thresholds = jnp.log(jnp.array([0.5, 0.5, 0.5]))
      >>> print(losses.metropolis_walk(thresholds, jnp.log(jnp.array([1.0, 0.4, 0.6]))))
      2

    Source: Hastings (1970).
    """
    value_checks.check_shapes(
        log_thresholds=(log_thresholds, "... K"), log_weights=(log_weights, "... K")
    )
    value_checks.check_log_probs(log_thresholds=log_thresholds)

    def step(state, proposal):
        slot, log_weight = state
        new_slot, new_log_weight, threshold = proposal
        accepted = threshold < new_log_weight - log_weight
        return (
            jnp.where(accepted, new_slot, slot),
            jnp.where(accepted, new_log_weight, log_weight),
        ), None

    weights, thresholds = (jnp.moveaxis(x, -1, 0) for x in (log_weights, log_thresholds))
    slots = jnp.arange(1, weights.shape[0], dtype=jnp.int32)
    initial = sharded_functions.zeros(weights.shape[1:], jnp.int32, like=weights[0]), weights[0]
    (slot, _), _ = jax.lax.scan(step, initial, (slots, weights[1:], thresholds[1:]))
    return slot
