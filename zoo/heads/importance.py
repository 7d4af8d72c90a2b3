"""Importance sampling: a softmax over the target and some noise words.

Bengio and Senecal (2003, 2008); Jean et al. (2015); Jozefowicz et al., "Exploring the limits of
language modeling" (2016), section 3.1. From the set S of the target and the noise words, which of
them is the data's? With expected counts E of the draw, the posterior is a softmax over S of the
corrected scores, so the loss is that of one multi-class problem:

    loss = log sum_{v in S} exp(o_v - log E_v) - (o_x - log E_x)

Noise words equal to the target are left out (they would be the target twice). As S grows to the
whole vocabulary with E = 1, the loss becomes the exact one.
"""

import dataclasses

from zoo.heads.sampled import SampledHead, log_sum_exp, masked


def importance_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, left_out):
    """log sum_{v in S} exp(o_v - log E_v) - (o_x - log E_x).

    Args:
      true_logits, log_expected_true: o_x and log E_x, [...].
      noise_logits, log_expected_noise: [..., K]. left_out: bool [..., K], not in S: hits and
        repeats.

    Returns:
      [...], in nats of the small problem over S.
    """
    true = true_logits - log_expected_true
    others = masked(noise_logits - log_expected_noise, left_out)
    return log_sum_exp(true, others) - true


@dataclasses.dataclass(frozen=True)
class ImportanceSampling(SampledHead):
    """The softmax trained by importance sampling ("sampled softmax")."""

    loss_name = "sampled softmax loss"

    def sampled_loss(self, params, true, noise, log_expected_true, log_expected_noise, kept, hits):
        """See importance_loss."""
        return importance_loss(true, noise, log_expected_true, log_expected_noise, hits | ~kept)
