"""Noise-contrastive estimation: a classification of each word as the data's or the noise's.

Gutmann and Hyvarinen (2010); Mnih and Teh (2012); Jozefowicz et al. (2016), section 3.1. Each word,
the target or one of the K noise words, is one binary problem. With the unnormalised model
exp(o_v - log Z) and expected counts E_v = K q(v) of the noise, a word comes from the data with the
probability

    P(data | v) = exp(o_v - log Z) / (exp(o_v - log Z) + E_v) = sigmoid(o_v - log Z - log E_v)

    loss = -log P(data | x) - sum_k log(1 - P(data | v_k))

A noise word that equals the target is kept, since the noise does draw it. Z is a constant, not a
sum: the classifier is only right if the model is normalised, which it therefore learns to be.
"""

import jax
import jax.numpy as jnp

from zoo.base.arrays.precision import accumulator
from zoo.base.arrays.types import Array
from zoo.losses.importance import check_slots

# The logarithm of a product of this many numbers, each from 1 to 2, is taken once.
FACTORS = 32


def nce_loss(
    true_logits: Array,
    noise_logits: Array,
    log_expected_true: Array,
    log_expected_noise: Array,
    mask: Array | bool = True,
) -> Array:
    """Computes -log sigmoid(o_x - log E_x) - sum_k log sigmoid(log E_k - o_k).

    Args:
      true_logits: o_x - log Z of the target, [...], nats.
      noise_logits: o_k - log Z of the noise words, [..., K], nats.
      log_expected_true: log E_x, [...]; see `log_expected_count`.
      log_expected_noise: log E_k, [..., K].
      mask: bool [..., K], False for draws that do not count; True if all count.

    Returns:
      The loss of K + 1 binary problems, [...], nats. It is not a log-probability: use it for
      training only.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> loss = losses.nce_loss(
      ...     jnp.zeros(1), jnp.zeros((1, 3)), jnp.zeros(1), jnp.zeros((1, 3))
      ... )
      >>> print(f"{loss[0]:.4f}", f"{4 * jnp.log(2):.4f}")  # four problems at probability 1/2
      2.7726 2.7726

    Source: Gutmann and Hyvarinen (2010); Mnih and Teh (2012), equation 7; Jozefowicz et al. (2016),
    section 3.1.
    """
    draw_arrays = {"mask": jnp.asarray(mask)} if jnp.ndim(mask) else {}
    slots = true_logits, noise_logits, log_expected_true, log_expected_noise
    check_slots(slots, **draw_arrays)
    noise = jnp.where(mask, noise_logits - log_expected_noise, jnp.finfo(noise_logits.dtype).min)
    noise = noise.astype(accumulator(noise))  # a product of 32 factors is no number of float16
    return jax.nn.softplus(log_expected_true - true_logits) + _softplus_sum(noise)


@jax.custom_jvp
def _softplus_sum(x):
    """Computes sum_k log(1 + exp(x_k)) of x [..., K], taking a logarithm for FACTORS summands."""
    factors = 1 + jnp.exp(-jnp.abs(x))
    padding = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % FACTORS)]
    groups = jnp.pad(factors, padding, constant_values=1)
    groups = groups.reshape(*x.shape[:-1], -1, FACTORS).prod(axis=-1)
    return jnp.maximum(x, 0).sum(axis=-1) + jnp.log(groups).sum(axis=-1)


_softplus_sum.defjvps(lambda slope, _, x: (jax.nn.sigmoid(x) * slope).sum(axis=-1))
