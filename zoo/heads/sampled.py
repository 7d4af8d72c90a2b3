"""What heads with sampled losses share: the softmax's parameters, and scores of a few words."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.arrays import rows
from zoo.arrays.types import Context, Key, Params, Tables
from zoo.errors import UserError, check_least
from zoo.heads import noise as noises
from zoo.heads.head import Head
from zoo.heads.softmax import Softmax
from zoo.lexicon import Lexicon
from zoo.losses import softmax
from zoo.losses.noise import UNITS, log_expected_count, noise_tables, sample_noise

# Scores of noise words [K], [B, K] or [..., K].
PRODUCTS = {"batch": "...d,kd->...k", "lane": "b...d,bkd->b...k", "token": "...d,...kd->...k"}


@dataclasses.dataclass(frozen=True)
class SampledHead(Softmax):
    """A softmax whose training loss scores the target and K noise words instead of V words.

    Everything but `loss` is the exact softmax's. Subclasses say what the loss of the scores is:

        sampled_loss(params, true_logits [...], noise_logits [..., K], log_expected_true [...],
                     log_expected_noise [..., K], kept [..., K], hits [..., K]) -> [...]

    kept marks noise words that were not dropped as repeats, hits those equal to the target.

    Attributes:
      noise: the distribution. samples: K, draws. noise_per: what has draws of its own, the
        "batch", each "lane" or each "token": tokens that share them make their scores one product.
        distinct: repeated draws are dropped; losses over slots, such as that of
        `zoo.losses.importance`, then have a slot a word instead of one a draw.
    """

    noise: noises.Noise = noises.LogUniformNoise()
    samples: int = 1024
    noise_per: str = "batch"
    distinct: bool = False

    row_tables = ("weights", "bias")

    def __post_init__(self):
        check_least(self, "model.head", samples=1)
        if self.noise_per not in UNITS:
            raise UserError(
                f"model.head.noise_per is {self.noise_per!r}: give one of {', '.join(UNITS)}."
            )

    def tables(self, lexicon: Lexicon) -> Tables:
        """The noise distribution: see losses.noise_tables."""
        return noise_tables(self.noise.probabilities(lexicon.counts))

    def evaluation_tables(self, lexicon: Lexicon) -> Tables:
        """Nothing: noise is for the loss."""
        return {}

    def loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """The sampled loss, [...]: for training only, not a log-probability. It needs a key."""
        if key is None:
            raise ValueError(f"{type(self).__name__}.loss draws noise words: give it a key")
        drawn = sample_noise(
            tables,
            key,
            targets.shape,
            self.samples,
            per=self.noise_per,
            distinct=self.distinct,
        )
        return self.loss_of(params, hidden, targets, tables["log_q"][targets], drawn)

    def loss_of(
        self, params: Params, hidden: jax.Array, targets: jax.Array, log_q: jax.Array, drawn
    ) -> jax.Array:
        """The sampled loss with these noise words, [...]; `log_q` is of the targets, [...].

        Targets and `drawn.words` are rows of the weights, which need not be those of a lexicon.
        """

        def for_tokens(of_words):
            """What the noise words have, as [..., K], one row a token."""
            if self.noise_per == "lane":
                ones = (1,) * (targets.ndim - 1)
                of_words = of_words.reshape(targets.shape[0], *ones, self.samples)
            return jnp.broadcast_to(of_words, (*targets.shape, self.samples))

        words, kept, log_expected = map(for_tokens, drawn)
        product = PRODUCTS[self.noise_per]
        return self.sampled_loss(
            params,
            self._scores(params, hidden, targets, "...d,...d->..."),
            self._scores(params, hidden, drawn.words, product, for_tokens),
            log_expected_count(log_q, self.samples, self.distinct),
            log_expected,
            kept,
            words == targets[..., None],
        )

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
        """The loss of each token, nats, [...], from the scores of its target, [...], and of its
        noise words, [..., K]; every sampled head writes this itself."""
        raise self._unwritten("sampled_loss")

    def without_slot(self, kept: jax.Array, hits: jax.Array) -> jax.Array:
        """Draws [..., K] that have no slot in a loss over the slots of the target and the draws.

        A draw that is the target stays, for the noise does draw it, unless slots are of words: then
        the target has its own already.
        """
        return ~kept | hits if self.distinct else ~kept

    # The sum of what `loss` gives; the softmax's own is that of its exact loss.
    weighted_loss = Head.weighted_loss

    def _scores(
        self,
        params: Params,
        hidden: jax.Array,
        words: jax.Array,
        product,
        for_tokens=lambda bias: bias,
    ):
        """w_v . h + c_v of some words, in at least float32."""
        found = jnp.einsum(
            product,
            hidden,
            rows.take(params["weights"], words),
            preferred_element_type=softmax.accumulator(hidden),
        )
        if not self.bias:
            return found
        bias = rows.take(params["bias"], words).astype(found.dtype)
        return found + for_tokens(bias)
