"""BlackOut: a discriminative loss over the target and some noise words.

Ji et al., "BlackOut: speeding up recurrent neural network language models with very large
vocabularies" (2016), equations 6 and 7. With the softmax over the slots S of the target x, slot 0,
and of the noise words, weighted by 1 / E, the expected counts,

    p~_i = exp(o_{v_i} - log E_{v_i}) / sum_{j in S} exp(o_{v_j} - log E_{v_j}),

the target's slot is to be likely and every other unlikely:

    loss = -log p~_0 - sum_{i > 0} log(1 - p~_i)

S and E are those of importance sampling: see `zoo.losses.importance`, where p~_i is, at the truth,
the probability that slot i holds the datum. The loss is the sum of |S| logistic losses of that
probability, each of which it minimises. So what is estimated is the softmax's p: with all draws
kept, the expected gradient is 0 at the truth for every K; with repeats dropped, 0 for K = 1, for
uniform noise and as K grows, and at most 0.0064 in between (V = 5, K = 2 ... 4). The paper's S
has no draws that are the target; with repeats kept, that is the bias which importance sampling has
without them, threefold, and they stay here.
"""

import jax.numpy as jnp

from zoo.losses.importance import check_slots, log_sum_exp, masked


def blackout_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, left_out):
    """Computes -log p~_0 - sum_k log(1 - p~_k), the sum over the draws in S.

    Args:
      true_logits: o_x of the target, [...], nats.
      noise_logits: o_k of the noise words, [..., K], nats.
      log_expected_true: log E_x, [...]; see `log_expected_count`.
      log_expected_noise: log E_k, [..., K].
      left_out: bool [..., K], draws that are not in S: see `importance_loss`.

    Returns:
      The loss, [...], nats. It is no log-probability: for training only.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> loss = losses.blackout_loss(
      ...     jnp.zeros(1), jnp.zeros((1, 1)), jnp.zeros(1), jnp.zeros((1, 1)), jnp.array([[False]])
      ... )
      >>> print(f"{loss[0]:.4f}")  # the target has a half, the noise word a half: twice log 2
      1.3863

    Source: Ji et al. (2016), equations 6 and 7.
    """
    check_slots(true_logits, noise_logits, log_expected_true, log_expected_noise, left_out)
    true = true_logits - log_expected_true
    others = masked(noise_logits - log_expected_noise, left_out)
    log_z = log_sum_exp(true, others)
    # A noise word that has all the mass would cost infinitely much: stop a rounding error short.
    log_others = jnp.minimum(others - log_z[..., None], -jnp.finfo(others.dtype).eps)
    return log_z - true - jnp.log(-jnp.expm1(log_others)).sum(-1)
