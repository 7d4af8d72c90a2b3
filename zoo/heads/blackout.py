"""BlackOut: a discriminative loss over the target and some noise words.

Ji et al., "BlackOut: speeding up recurrent neural network language models with very large
vocabularies" (2016), equations 6 and 7. With the softmax over the slots S of the target x, slot 0,
and of the noise words, weighted by 1 / E, the expected counts,

    p~_i = exp(o_{v_i} - log E_{v_i}) / sum_{j in S} exp(o_{v_j} - log E_{v_j}),

the target's slot is to be likely and every other unlikely:

    loss = -log p~_0 - sum_{i > 0} log(1 - p~_i)

S and E are those of importance sampling: see `zoo.heads.importance`, where p~_i is, at the truth,
the probability that slot i holds the datum. The loss is the sum of |S| logistic losses of that
probability, each of which it minimises. So what is estimated is the softmax's p: with all draws
kept, the expected gradient is 0 at the truth for every K; with repeats dropped, 0 for K = 1, for
uniform noise and as K grows, and at most 0.0064 in between (V = 5, K = 2 ... 4). The paper's S
has no draws that are the target; with repeats kept, that is the bias which importance sampling has
without them, threefold, and they stay here.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.arrays.types import Params
from zoo.heads import noise as noises
from zoo.heads.sampled import SampledHead, log_sum_exp, masked


def blackout_loss(true_logits, noise_logits, log_expected_true, log_expected_noise, left_out):
    """-log p~_0 - sum_k log(1 - p~_k); arguments as importance_loss has them. [...]."""
    true = true_logits - log_expected_true
    others = masked(noise_logits - log_expected_noise, left_out)
    log_z = log_sum_exp(true, others)
    # A noise word that has all the mass would cost infinitely much: stop a rounding error short.
    log_others = jnp.minimum(others - log_z[..., None], -jnp.finfo(others.dtype).eps)
    return log_z - true - jnp.log(-jnp.expm1(log_others)).sum(-1)


@dataclasses.dataclass(frozen=True)
class BlackOut(SampledHead):
    """The softmax trained by BlackOut; the paper draws from the unigrams to a power of 0.4.

    Example:
      >>> head = heads.BlackOut(samples=2)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.loss(params, tables, hidden, targets, key=key).shape  # sampled, for training
      (2,)
      >>> head.log_prob(params, tables, hidden, targets).shape  # exact
      (2,)
    """

    noise: noises.Noise = noises.UnigramNoise(power=0.4)

    loss_name = "BlackOut loss"

    def sampled_loss(
        self,
        params: Params,
        true: jax.Array,
        noise: jax.Array,
        log_expected_true: jax.Array,
        log_expected_noise: jax.Array,
        kept: jax.Array,
        hits: jax.Array,
    ) -> jax.Array:
        """See blackout_loss."""
        return blackout_loss(
            true, noise, log_expected_true, log_expected_noise, self.without_slot(kept, hits)
        )
