"""Heads with sampled losses, which score only the target and noise words in training.

Importance sampling, BlackOut and noise-contrastive estimation differ in the loss of these scores:
see `zoo.losses`. Their probabilities are the softmax's.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import precision, products, row_lookup
from zoo.base.arrays.types import Params, Tables
from zoo.errors import check_choices, check_least
from zoo.heads import noise as noises
from zoo.heads.checks import Shapes
from zoo.heads.softmax import SoftmaxScores
from zoo.lexicon import Lexicon
from zoo.losses.noise_sampling import UNITS, log_expected_count, noise_tables, sample_noise

# Scores of noise words [K], [B, K] or [..., K].
PRODUCTS = {"batch": "...d,kd->...k", "row": "b...d,bkd->b...k", "token": "...d,...kd->...k"}


def broadcast_draws(draws: jax.Array, per: str, tokens: tuple[int, ...]) -> jax.Array:
    """Broadcasts an array over draws to [..., K], one row for each token."""
    if per == "row":
        draws = draws.reshape(draws.shape[0], *(1,) * (len(tokens) - 1), -1)
    return jnp.broadcast_to(draws, (*tokens, draws.shape[-1]))


class SampledScores(NamedTuple):
    """The arguments of a sampled loss."""

    true: jax.Array  # the scores of the targets, [...]
    noise: jax.Array  # the scores of the noise words, [..., K]
    log_expected_true: jax.Array  # log of the expected number of draws of the target, [...]
    log_expected_noise: jax.Array  # the same of each noise word, [..., K]
    is_kept: jax.Array  # bool [..., K], False for a draw that was dropped as a repeat
    # bool [..., K], True for a draw without a slot in a loss over the slots of the target and the
    # draws: a dropped draw, and, where slots belong to distinct words, a draw of the target
    is_excluded: jax.Array


@dataclasses.dataclass(frozen=True)
class SampledHead(SoftmaxScores):
    """A softmax whose training loss scores the target and K noise words instead of V words.

    Subclasses define the loss of the scores, `sampled_loss`.

    Attributes:
      noise: the distribution of noise words.
      samples: K, the number of draws.
      noise_per: the unit that has draws of its own: the "batch", each "row" or each "token". The
        scores of tokens that share draws are one matrix product.
      distinct: whether repeated draws are dropped; losses over slots, such as
        `zoo.losses.importance`, then have a slot for each distinct word instead of each draw.
    """

    noise: noises.Noise = noises.LogUniformNoise()
    samples: int = 1024
    noise_per: str = "batch"
    distinct: bool = False

    row_tables = ("weights", "bias")
    loss_draws = True

    @property
    def array_shapes(self) -> Shapes:
        params = {"weights": "V D"} | ({"bias": "V"} if self.bias else {})
        return Shapes(params, {}, {"log_q": "V", "threshold": "V", "alias": "int V"})

    def __post_init__(self):
        check_least(self, samples=1)
        check_choices(self, noise_per=tuple(UNITS))

    def _tables(self, lexicon: Lexicon) -> Tables:
        return noise_tables(self.noise.probabilities(lexicon.counts))

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        return {}

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        weights = params["weights"]
        if "log_q" not in tables or isinstance(weights, row_lookup.Computed):
            return ()
        return (("words", weights.shape[0], len(tables["log_q"])),)

    def _loss(self, params, tables, hidden, targets, key, context):
        if key is None:
            raise ValueError(f"{type(self).__name__}.loss draws noise words: give it a key")
        noise_sample = sample_noise(
            tables, key, targets.shape, self.samples, per=self.noise_per, distinct=self.distinct
        )
        return self.loss_with_noise(params, hidden, targets, tables["log_q"][targets], noise_sample)

    def loss_with_noise(
        self, params: Params, hidden: jax.Array, targets: jax.Array, log_q: jax.Array, noise_sample
    ) -> jax.Array:
        """Computes the sampled loss, [...], with a given `NoiseSample` and log q of the targets."""
        shape = targets.shape
        if self.noise_per == "batch":  # one axis of tokens, as the product of matrices has
            hidden, targets, log_q = (
                x.reshape(-1, *x.shape[len(shape) :]) for x in (hidden, targets, log_q)
            )

        broadcast = functools.partial(broadcast_draws, per=self.noise_per, tokens=targets.shape)
        words, is_kept, log_expected = map(broadcast, noise_sample)
        product = PRODUCTS[self.noise_per]
        scores = SampledScores(
            true=self._scores(params, hidden, targets, "...d,...d->..."),
            noise=self._scores(params, hidden, noise_sample.words, product, broadcast),
            log_expected_true=log_expected_count(log_q, self.samples, self.distinct),
            log_expected_noise=log_expected,
            is_kept=is_kept,
            is_excluded=~is_kept | (words == targets[..., None]) if self.distinct else ~is_kept,
        )
        return self.sampled_loss(params, scores).reshape(shape)

    def sampled_loss(self, params: Params, scores: SampledScores) -> jax.Array:
        """Computes the loss of each token, [...], nats; every sampled head overrides it."""
        raise self._unwritten("sampled_loss")

    def _scores(self, params, hidden, words, product, broadcast=lambda bias: bias):
        """Computes w_v . h + c_v of some words, in at least float32."""
        vectors = row_lookup.take(params["weights"], words)
        if vectors.shape[-1] != hidden.shape[-1]:  # computed vectors have no shape until now
            raise ValueError(
                f"{type(self).__name__}.loss: hidden states have {hidden.shape[-1]} numbers, and "
                f"the vectors of words {vectors.shape[-1]}"
            )
        if product == PRODUCTS["batch"] and not precision.is_narrow(vectors):
            # XLA for CPUs computes the gradient faster as [D, K], and would transpose the product.
            product, vectors = "...d,dk->...k", jax.lax.optimization_barrier(vectors.T)
        scores = products.einsum(product, hidden, vectors)
        if not self.bias:
            return scores
        bias = row_lookup.take(params["bias"], words).astype(scores.dtype)
        return scores + broadcast(bias)
