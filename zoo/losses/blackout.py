"""BlackOut: a discriminative loss over the target and some noise words.

Ji et al., "BlackOut: speeding up recurrent neural network language models with very large
vocabularies" (2016), equations 6 and 7. The slots S are the target x in slot 0 and the noise words.
With a softmax over the slots, weighted by 1 / E, E being the expected counts,

    p~_i = exp(o_{v_i} - log E_{v_i}) / sum_{j in S} exp(o_{v_j} - log E_{v_j}),

the loss makes the target's slot likely and every other slot unlikely:

    loss = -log p~_0 - sum_{i > 0} log(1 - p~_i)

S and E are the same as in importance sampling, see `zoo.losses.importance`: at the truth, p~_i is
the probability that slot i holds the datum. The loss is the sum of |S| logistic losses, each of
which is least at that probability, so that the softmax's p is estimated. With all draws kept, the
expected gradient is 0 at the truth for every K. With repeats dropped, it is 0 for K = 1, for
uniform noise and as K grows, and at most 0.0064 in between (V = 5, K = 2 ... 4). The paper's S
leaves out draws that equal the target. With repeats kept, this gives three times the bias that it
gives importance sampling, so such draws stay here.
"""

import jax.numpy as jnp

from zoo.losses.importance import check_slots, log_sum_exp, masked


def blackout_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, left_out):
    """Computes -log p~_0 - sum_k log(1 - p~_k), the sum over the draws in S.

    Args:
      true_logits, noise_logits, log_expected_true, log_expected_noise, left_out: see
        `importance_loss`.

    Returns:
      The loss, [...], nats. It is not a log-probability: use it for training only.

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
    slots = true_logits, noise_logits, log_expected_true, log_expected_noise
    check_slots(*slots, left_out=left_out)
    true = true_logits - log_expected_true
    others = masked(noise_logits - log_expected_noise, left_out)
    log_z = log_sum_exp(true, others)
    # A noise word with all the mass would cost infinitely much: at most one rounding below 1.
    log_others = jnp.minimum(others - log_z[..., None], -jnp.finfo(others.dtype).eps)
    return log_z - true - jnp.log(-jnp.expm1(log_others)).sum(-1)
