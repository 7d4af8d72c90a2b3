"""Importance sampling and BlackOut: which slot, the target's or a draw's, has the datum?

Bengio and Senecal (2003, 2008); Jean et al. (2015); Jozefowicz et al., "Exploring the limits of
language modeling" (2016), section 3.1. The target v_0 = x and K draws v_1 ... v_K of the noise q
fill K + 1 slots. With the scores o and the expected counts E of the words, the loss is a
cross-entropy over a set S of slots:

    loss = log sum_{i in S} exp(o_{v_i} - log E_{v_i}) - (o_x - log E_x)

If all draws are kept, S has all K + 1 slots and E = K q. By Bayes, the datum, drawn from p, is in
slot i with the probability

    p(v_i) prod_{j != i} q(v_j) / sum_l p(v_l) prod_{j != l} q(v_j)
        = (p(v_i) / q(v_i)) / sum_l p(v_l) / q(v_l),

which is the softmax of the corrected scores if o = log p + c. So the expected gradient is 0 at the
truth, for every K and every q (Ma and Collins 2018). This needs the draws that equal the target:
without these, of which K q(x) are expected, the loss would be least where frequent words have too
much mass.

If repeats are dropped (`distinct`), S has a slot for each word: x, and the drawn words except x.
E_v = 1 - (1 - q(v))^K is the probability that v is drawn at all. If words were drawn independently
of each other, the datum would be v with a probability proportional to p(v) / E_v; for K draws, this
is nearly so. At the truth, the expected gradient is 0 for K = 1, for uniform noise and as K grows;
in between, summed over all draws (V = 5, K = 2 ... 4), it was at most 0.0024. With E = 1 and the
whole vocabulary as S, the loss is the exact loss.

Ji et al., "BlackOut: speeding up recurrent neural network language models with very large
vocabularies" (2016), equations 6 and 7, discriminate between the slots. With their softmax,

    p~_i = exp(o_{v_i} - log E_{v_i}) / sum_{j in S} exp(o_{v_j} - log E_{v_j}),

the loss makes the target's slot likely and every other slot unlikely:

    loss = -log p~_0 - sum_{i > 0} log(1 - p~_i)

At the truth, p~_i is the probability that slot i holds the datum. The loss is the sum of |S|
logistic losses, each of which is least at that probability, so that the softmax's p is estimated.
With all draws kept, the expected gradient is 0 at the truth for every K. With repeats dropped, it
is 0 for K = 1, for uniform noise and as K grows, and at most 0.0064 in between (V = 5, K = 2 ...
4). The paper's S leaves out draws that equal the target. With repeats kept, this gives three times
the bias that it gives importance sampling, so such draws stay here.
"""

import jax
import jax.numpy as jnp

from zoo.base.arrays.types import Array
from zoo.losses.value_checks import check_shapes


def importance_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, is_excluded):
    """Computes log sum_i exp(o_i - log E_i) - (o_x - log E_x) over x and noise words not excluded.

    Args:
      true_logits: o_x of the target, [...], nats.
      noise_logits: o_k of the noise words, [..., K], nats.
      log_expected_true: log E_x, [...]; see `log_expected_count`.
      log_expected_noise: log E_k, [..., K].
      is_excluded: bool [..., K], draws that are not in S: none if all draws are kept; repeats, and
        draws that equal the target, if repeats are dropped.

    Returns:
      The cross-entropy over S, [...], nats. It is not a log-probability over the vocabulary: use it
      for training only.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> everything = jnp.log(jnp.array([0.5, 0.25, 0.25]))  # S is the vocabulary, E is 1: exact
      >>> is_target = jnp.array([True, False, False])
      >>> loss = losses.importance_loss(
      ...     everything[0], everything, jnp.zeros(()), jnp.zeros(3), is_target
      ... )
      >>> print(f"{loss:.4f}")
      0.6931

    Source: Bengio and Senecal (2008); Jean et al. (2015), section 3; Jozefowicz et al. (2016),
    section 3.1; Ma and Collins (2018), on its consistency.
    """
    slots = true_logits, noise_logits, log_expected_true, log_expected_noise
    check_slots(slots, is_excluded=is_excluded)
    true = true_logits - log_expected_true
    return log_sum_exp(true, exclude(noise_logits - log_expected_noise, is_excluded)) - true


def blackout_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, is_excluded):
    """Computes -log p~_0 - sum_k log(1 - p~_k) of the target, 0, and noise words k not excluded.

    p~ is the softmax of o - log E over these words.

    Args:
      true_logits, noise_logits, log_expected_true, log_expected_noise, is_excluded: see
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
    check_slots(slots, is_excluded=is_excluded)
    true = true_logits - log_expected_true
    noise = exclude(noise_logits - log_expected_noise, is_excluded)
    log_z = log_sum_exp(true, noise)
    # A noise word with all the mass would cost infinitely much: at most one rounding below 1.
    log_noise = jnp.minimum(noise - log_z[..., None], -jnp.finfo(noise.dtype).eps)
    return log_z - true - jnp.log(-jnp.expm1(log_noise)).sum(-1)


def exclude(logits: Array, is_excluded: Array) -> Array:
    """Replaces excluded logits by the least finite number: its exp is 0, its gradient finite."""
    return jnp.where(is_excluded, jnp.finfo(logits.dtype).min, logits)


def log_sum_exp(true_logits: Array, noise_logits: Array) -> Array:
    """Computes log(exp(true) + sum_k exp(noise_k)), [...]."""
    return jnp.logaddexp(true_logits, jax.nn.logsumexp(noise_logits, axis=-1))


def check_slots(slots: tuple[Array, ...], **draw_arrays: Array):
    """Raises ValueError unless `slots`, the first four arguments of `importance_loss`, and further
    arrays of draws, [..., K], agree in shape."""
    true_logits, noise_logits, log_expected_true, log_expected_noise = slots
    arrays = {"noise_logits": noise_logits, "log_expected_noise": log_expected_noise} | draw_arrays
    check_shapes(
        true_logits=(true_logits, "..."),
        log_expected_true=(log_expected_true, "..."),
        **{name: (array, "... K") for name, array in arrays.items()},
    )
