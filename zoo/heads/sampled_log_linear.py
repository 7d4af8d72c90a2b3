"""The log-linear head trained on draws from its background: see `zoo.losses.sampled_log_linear`.

The gradient of -log p(x) with respect to the adaptor is E_p[phi] - phi(x). The exact head sums the
expectation over all signatures. This head estimates it from K signatures drawn from the
background's mass B, with log weights a . phi_s, so that a training step costs K sets of features,
whatever V is.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import precision, products, row_lookup
from zoo.base.arrays.random_keys import Keys
from zoo.base.arrays.types import Params, Tables
from zoo.errors import UserError, check_choices, check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.heads.log_linear import LogLinear
from zoo.heads.sampled import PRODUCTS, broadcast_draws
from zoo.lexicon import Lexicon, feature_signatures
from zoo.losses import importance
from zoo.losses.noise_sampling import UNITS, draw_per_unit, sample_noise, tables_with_zeros
from zoo.losses.sampled_log_linear import metropolis_walk

CHAIN = 0x636861  # folded into keys, so that chains and draws have different random numbers


@dataclasses.dataclass(frozen=True)
class SampledLogLinear(LogLinear):
    """The log-linear head, trained on K draws of the background (section 2.3).

    With importance sampling, draws s_1 ... s_K and the target's signature s_0, the loss is

        log (1 / (K + 1) sum_k exp(a . phi_k)) - a . phi(x) - log b(x).

    Its gradient has sum_k u_k phi_k, with the normalised weights u, in the place of E_p[phi]. It is
    the loss of `zoo.losses.importance` with b as the noise: if targets are drawn from p, its
    expected gradient is 0 where the model is p, and its mean is above the cross-entropy. With
    contrastive divergence, the loss is a . phi(v) - a . phi(x), where v is the last state of a
    Metropolis chain of K proposals that starts at x: it does not estimate -log p, but its gradient
    estimates the gradient of -log p. The penalty is added to both. Probabilities are computed
    exactly, as by LogLinear.

    Attributes:
      estimate: "importance" or "contrastive".
      samples: K, the number of draws, or of steps of the chain.
      noise_per: the unit that has draws of its own: the "batch", each "row" or each "token".
        Chains that share proposals also share the random numbers that accept them.

    Raises:
      UserError: the background depends on the context.

    Example:
      >>> features = [{"Article": 1.0}, {"Noun": 1.0}, {"Verb": 1.0}]
      >>> lexicon = with_features(lexicon, features, np.log([0.5, 0.3, 0.2]))
      >>> head = heads.SampledLogLinear(samples=8)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.loss(params, tables, hidden, targets, key=key).shape  # sampled, for training
      (2,)
      >>> head.log_prob(params, tables, hidden, targets).shape  # exact
      (2,)

    Source: Dymetman and Xiao (2016), section 2.3; Ma and Collins (2018); Hinton (2002).
    """

    estimate: str = "importance"
    samples: int = 100
    noise_per: str = "batch"

    loss_draws = True

    def __post_init__(self):
        super().__post_init__()
        check_least(self, samples=1)
        check_choices(self, estimate=("importance", "contrastive"), noise_per=tuple(UNITS))
        if self.background is not None:
            raise UserError(
                f"background of SampledLogLinear is a {type(self.background).__name__}, and it "
                "draws from the lexicon's background: leave it out, or use heads.LogLinear."
            )

    @property
    def array_shapes(self) -> Shapes:
        return super().array_shapes._replace(loss_tables={"draws": None})

    @property
    def loss_name(self) -> str:
        return f"{self.estimate} estimate"

    def _tables(self, lexicon: Lexicon) -> Tables:
        """Returns the tables of LogLinear and "draws": the noise tables of the background's mass of
        each signature, and the signatures' features."""
        tables = super()._tables(lexicon)
        if not tables:
            return tables
        log_mass = np.asarray(tables["log_mass"], np.float64)
        mass = np.exp(log_mass - log_mass.max())
        # A signature without mass is never drawn.
        mass_tables = tables_with_zeros(mass / mass.sum())
        features = feature_signatures.feature_tables(lexicon.with_kinds(self.kinds))
        return {**tables, "draws": {**mass_tables, **jax.tree.map(jnp.asarray, features)}}

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        return super()._tables(lexicon)

    def _loss(self, params, tables, hidden, targets, key, context):
        if key is None:
            raise ValueError("SampledLogLinear.loss draws words: give it a key")
        draws, target_signatures = tables["draws"], tables["signature"][targets]
        negatives = sample_noise(draws, key, targets.shape, self.samples, per=self.noise_per).words
        true = self._scores(params, draws, hidden, target_signatures, "...d,...d->...")
        noise = self._scores(params, draws, hidden, negatives, PRODUCTS[self.noise_per])
        if self.estimate == "importance":
            # The target is among the slots: without it, a seldom drawn word could not have more of
            # E_p[phi] than the share of steps that draw it, and its score would rise without end.
            slots = jnp.log(self.samples + 1).astype(noise.dtype)
            log_z = importance.log_sum_exp(true, noise) - slots
            log_offset = draws["log_q"][target_signatures] + tables["log_within"][targets]
            return log_z - true - log_offset
        scores = jnp.concatenate([true[..., None], noise], axis=-1)
        thresholds = self._log_thresholds(key, noise)
        thresholds = jnp.concatenate([jnp.zeros_like(thresholds[..., :1]), thresholds], axis=-1)
        final_slots = metropolis_walk(thresholds, jax.lax.stop_gradient(scores))
        return jnp.take_along_axis(scores, final_slots[..., None], axis=-1)[..., 0] - true

    _weighted_loss = Head._weighted_loss  # not LogLinear's, of the exact loss

    def _scores(self, params: Params, draws: Tables, hidden: jax.Array, signatures, product):
        """Computes a . phi_s of some signatures, in at least float32, by the einsum `product` of
        hidden states and signatures' vectors."""
        features, values = draws["features"][signatures], draws["feature_values"][signatures]
        rows = row_lookup.take(params["weights"], features)
        vectors = precision.rounded_as(products.einsum("...pd,...p->...d", rows, values), rows)
        biases = (params["bias"][features] * values).sum(axis=-1)
        scores = products.einsum(product, hidden, vectors)
        if product in PRODUCTS.values():  # of draws
            biases = broadcast_draws(biases, self.noise_per, scores.shape[:-1])
        return scores + biases.astype(scores.dtype)

    def _log_thresholds(self, key, scores):
        """Draws log u for the steps of the chains, [..., K], for each unit of `noise_per`."""
        has_row_keys = isinstance(key, Keys)
        chain_key = key.fold_in(CHAIN) if has_row_keys else jax.random.fold_in(key, CHAIN)

        def draw(key, shape):
            return jnp.log(jax.random.uniform(key, shape, scores.dtype))

        log_u = draw_per_unit(draw, chain_key, scores.shape[:-1], self.samples, self.noise_per)
        return broadcast_draws(log_u, self.noise_per, scores.shape[:-1])
