"""The base of heads with sampled losses: the softmax's parameters, and scores of a few words."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.arrays import row_lookup
from zoo.arrays.types import Params, Tables
from zoo.errors import check_choices, check_least
from zoo.heads import noise as noises
from zoo.heads.argument_checks import Shapes
from zoo.heads.softmax import SoftmaxScores
from zoo.lexicon import Lexicon
from zoo.losses import softmax
from zoo.losses.noise import UNITS, log_expected_count, noise_tables, sample_noise

# Scores of noise words [K], [B, K] or [..., K].
PRODUCTS = {"batch": "...d,kd->...k", "lane": "b...d,bkd->b...k", "token": "...d,...kd->...k"}


class SampledScores(NamedTuple):
    """The scores that a sampled loss is computed from.

    Attributes:
      true: of the targets, [...].
      noise: of the noise words, [..., K].
      log_expected_true: log of the number of times that the target is drawn on average, [...].
      log_expected_noise: log of the number of times that each is drawn on average, [..., K].
      kept: noise words that were not dropped as repeats, bool [..., K].
      hits: noise words that are the target, bool [..., K].
    """

    true: jax.Array
    noise: jax.Array
    log_expected_true: jax.Array
    log_expected_noise: jax.Array
    kept: jax.Array
    hits: jax.Array


@dataclasses.dataclass(frozen=True)
class SampledHead(SoftmaxScores):
    """A softmax whose training loss scores the target and K noise words instead of V words.

    Subclasses say what the loss of the scores is, `sampled_loss`.

    Attributes:
      tied: the weights are the embedding's table, which the model hands in as params["weights"].
      bias: whether there is a bias a word.
      initial_scale: weights start uniform in +-initial_scale; the bias starts at 0.
      noise: the distribution.
      samples: K, draws.
      noise_per: what has draws of its own, the "batch", each "lane" or each "token": tokens that
        share them make their scores one product.
      distinct: repeated draws are dropped; losses over slots, such as that of
        `zoo.losses.importance`, then have a slot a word instead of one a draw.
    """

    noise: noises.Noise = noises.LogUniformNoise()
    samples: int = 1024
    noise_per: str = "batch"
    distinct: bool = False

    row_tables = ("weights", "bias")
    draws_noise = True

    @property
    def array_shapes(self) -> Shapes:
        params = {"weights": "V D"} | ({"bias": "V"} if self.bias else {})
        return Shapes(params, {}, {"log_q": "V", "threshold": "V", "alias": "int V"})

    def __post_init__(self):
        check_least(self, samples=1)
        check_choices(self, noise_per=tuple(UNITS))

    def _tables(self, lexicon: Lexicon) -> Tables:
        """The noise distribution: see `zoo.losses.noise_tables`."""
        return noise_tables(self.noise.probabilities(lexicon.counts))

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        """No tables: only the loss needs noise words."""
        return {}

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        """The numbers of words: with weights, and with noise; see `Head.sizes`."""
        weights = params["weights"]
        if "log_q" not in tables or isinstance(weights, row_lookup.Computed):
            return ()
        return (("words", weights.shape[0], len(tables["log_q"])),)

    def _loss(self, params, tables, hidden, targets, key, context):
        if key is None:
            raise ValueError(f"{type(self).__name__}.loss draws noise words: give it a key")
        drawn = sample_noise(
            tables, key, targets.shape, self.samples, per=self.noise_per, distinct=self.distinct
        )
        return self.loss_of(params, hidden, targets, tables["log_q"][targets], drawn)

    def loss_of(
        self, params: Params, hidden: jax.Array, targets: jax.Array, log_q: jax.Array, drawn
    ) -> jax.Array:
        """The sampled loss with these noise words, [...]; `log_q` is of the targets, [...].

        Targets and `drawn.words` are rows of the weights, which need not be those of a lexicon.
        """

        def for_tokens(of_words):
            """An array of the noise words as [..., K], one row a token."""
            if self.noise_per == "lane":
                ones = (1,) * (targets.ndim - 1)
                of_words = of_words.reshape(targets.shape[0], *ones, self.samples)
            return jnp.broadcast_to(of_words, (*targets.shape, self.samples))

        words, kept, log_expected = map(for_tokens, drawn)
        product = PRODUCTS[self.noise_per]
        scores = SampledScores(
            true=self._scores(params, hidden, targets, "...d,...d->..."),
            noise=self._scores(params, hidden, drawn.words, product, for_tokens),
            log_expected_true=log_expected_count(log_q, self.samples, self.distinct),
            log_expected_noise=log_expected,
            kept=kept,
            hits=words == targets[..., None],
        )
        return self.sampled_loss(params, scores)

    def sampled_loss(self, params: Params, scores: SampledScores) -> jax.Array:
        """The loss of each token, nats, [...]; every sampled head writes this itself."""
        raise self._unwritten("sampled_loss")

    def without_slot(self, kept: jax.Array, hits: jax.Array) -> jax.Array:
        """Draws [..., K] that have no slot in a loss over the slots of the target and the draws.

        A draw that is the target stays, for the noise does draw it, unless slots are of words: then
        the target has its own already.
        """
        return ~kept | hits if self.distinct else ~kept

    def _scores(
        self,
        params: Params,
        hidden: jax.Array,
        words: jax.Array,
        product,
        for_tokens=lambda bias: bias,
    ):
        """w_v . h + c_v of some words, in at least float32."""
        vectors = row_lookup.take(params["weights"], words)
        if vectors.shape[-1] != hidden.shape[-1]:  # of vectors that are computed, known only now
            raise ValueError(
                f"{type(self).__name__}.loss: hidden states have {hidden.shape[-1]} numbers, and "
                f"the vectors of words {vectors.shape[-1]}"
            )
        scores = jnp.einsum(
            product,
            hidden,
            vectors,
            preferred_element_type=softmax.accumulator(hidden),
        )
        if not self.bias:
            return scores
        bias = row_lookup.take(params["bias"], words).astype(scores.dtype)
        return scores + for_tokens(bias)
