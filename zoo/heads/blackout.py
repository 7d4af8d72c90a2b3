"""BlackOut: a discriminative loss over the target and some noise words.

Ji et al., "BlackOut: speeding up recurrent neural network language models with very large
vocabularies" (2016), equations 6 and 7. With the softmax over the target and the noise words
weighted by 1 / E_v, E_v the expected counts,

    p~(v) = exp(o_v - log E_v) / sum_{u in S} exp(o_u - log E_u),

the target is to be likely and every noise word unlikely:

    loss = -log p~(x) - sum_k log(1 - p~(v_k))
"""

import dataclasses

import jax.numpy as jnp

from zoo.heads import noise as noises
from zoo.heads.sampled import SampledHead, log_sum_exp, masked


def blackout_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, left_out):
    """-log p~(x) - sum_k log(1 - p~(v_k)); arguments as importance_loss has them. [...]."""
    true = true_logits - log_expected_true
    others = masked(noise_logits - log_expected_noise, left_out)
    log_z = log_sum_exp(true, others)
    # A noise word that has all the mass would cost infinitely much: stop a rounding error short.
    log_others = jnp.minimum(others - log_z[..., None], -jnp.finfo(others.dtype).eps)
    return log_z - true - jnp.log(-jnp.expm1(log_others)).sum(-1)


@dataclasses.dataclass(frozen=True)
class BlackOut(SampledHead):
    """The softmax trained by BlackOut; the paper draws from the unigrams to a power of 0.4."""

    noise: noises.Noise = noises.UnigramNoise(power=0.4)

    loss_name = "BlackOut loss"

    def sampled_loss(self, params, true, noise, log_expected_true, log_expected_noise, kept, hits):
        """See blackout_loss."""
        return blackout_loss(true, noise, log_expected_true, log_expected_noise, hits | ~kept)
