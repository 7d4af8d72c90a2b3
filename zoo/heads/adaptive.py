"""The adaptive softmax, with rare words in clusters of smaller vectors: see zoo.losses.adaptive.

`SplitSoftmax` has the same clusters of words with whole vectors.
"""

import abc
import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays.parameter_sharding import HIDDEN, VECTOR, WORDS, Axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params, Tables
from zoo.errors import UserError, check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.lexicon.lexicon import frequency_tables
from zoo.losses import adaptive


@dataclasses.dataclass(frozen=True)
class Clusters(Head):
    """Base class of heads of a softmax over words and clusters, and one within each cluster."""

    cutoffs: tuple[int, ...]

    def __post_init__(self):
        is_rising = isinstance(self.cutoffs, tuple) and [*self.cutoffs] == sorted({*self.cutoffs})
        if not is_rising or not self.cutoffs or self.cutoffs[0] < 1:
            raise UserError(
                f"cutoffs of {type(self).__name__} are {self.cutoffs}: give a tuple of rising "
                "whole numbers of at least 1."
            )

    def _check_lexicon(self, lexicon: Lexicon):
        """Raises UserError unless the last cluster has words."""
        if self.cutoffs[-1] >= len(lexicon):
            raise UserError(
                f"cutoffs of {type(self).__name__} are {self.cutoffs} and leave no words for the "
                f"last cluster: give cutoffs below the lexicon's {len(lexicon):,} words."
            )

    @abc.abstractmethod
    def _arrays(self, params: Params, hidden: jax.Array) -> tuple:
        """Returns (hidden, weights, bias, tails), arguments of functions in `losses.adaptive`."""

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        return adaptive.weighted_adaptive_loss(
            *self._arrays(params, hidden), tables["rank"][targets], token_weights
        )

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        log_prob = -adaptive.adaptive_loss(*self._arrays(params, hidden), tables["rank"][targets])
        return log_prob, jnp.zeros_like(log_prob)  # normalised as it stands

    def _log_probs(self, params, tables, hidden, context, prepared):
        return adaptive.adaptive_log_probs(*self._arrays(params, hidden))[..., tables["rank"]]

    def _top_k(self, params, tables, hidden, k, context, prepared):
        log_probs, ranks = adaptive.adaptive_top_k(*self._arrays(params, hidden), k)
        return log_probs, tables["word"][ranks]

    def _sample(self, params, tables, hidden, key, context, prepared):
        return tables["word"][adaptive.adaptive_sample(*self._arrays(params, hidden), key)]


@dataclasses.dataclass(frozen=True)
class AdaptiveSoftmax(Clusters):
    """A softmax over frequent words and clusters, and one within each cluster.

    Attributes:
      cutoffs: c_0 < c_1 < ..., ranks at which the vocabulary is cut.
      division: the factor by which the vectors' dimension shrinks from one tail to the next.
      initial_scale: vectors start uniform in +-initial_scale, projections in +-1/sqrt(D).

    Example:
      >>> head = heads.AdaptiveSoftmax(cutoffs=(2,))
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    cutoffs: tuple[int, ...] = (2000, 10000)
    division: float = 4.0
    initial_scale: float = 0.05

    ordered_by_frequency = True

    def __post_init__(self):
        check_least(self, division=1)
        super().__post_init__()

    @property
    def parameter_axes(self) -> Axes:
        axes: dict[str, tuple[str | None, ...]] = {"head": (WORDS, HIDDEN), "head_bias": (WORDS,)}
        for tail in range(len(self.cutoffs)):
            axes |= {f"projection_{tail}": (HIDDEN, None), f"tail_{tail}": (WORDS, VECTOR)}
        return axes

    @property
    def array_shapes(self) -> Shapes | None:
        params: dict[str, str | None] = {"head": "C D", "head_bias": "C"}
        for tail in range(len(self.cutoffs)):
            params |= {f"projection_{tail}": f"D D{tail}", f"tail_{tail}": f"V{tail} D{tail}"}
        return Shapes(params, {"rank": "int V", "word": "int V"})

    def _tables(self, lexicon: Lexicon) -> Tables:
        return frequency_tables(lexicon.counts)

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"head" [c_0 + tails, D], "head_bias", "projection_i" [D, D_i], "tail_i" [V_i,
        D_i]}."""
        self._check_lexicon(lexicon)
        scale, frequent = self.initial_scale, self.cutoffs[0]
        head_key, *tail_keys = jax.random.split(key, 1 + 2 * len(self.cutoffs))
        classes = frequent + len(self.cutoffs)
        params = {
            "head": uniform(head_key, (classes, hidden_size), scale),
            "head_bias": jnp.zeros(classes),
        }
        ends = (*self.cutoffs[1:], len(lexicon))
        for tail, (start, end) in enumerate(zip(self.cutoffs, ends, strict=True)):
            size = max(1, int(hidden_size / self.division ** (tail + 1)))
            for name, matrix_key, shape, width in (
                ("projection", tail_keys[2 * tail], (hidden_size, size), hidden_size**-0.5),
                ("tail", tail_keys[2 * tail + 1], (end - start, size), scale),
            ):
                params[f"{name}_{tail}"] = uniform(matrix_key, shape, width)
        return params

    def _arrays(self, params: Params, hidden: jax.Array) -> tuple:
        tails = [(params[f"projection_{i}"], params[f"tail_{i}"]) for i in range(len(self.cutoffs))]
        return hidden, params["head"], params["head_bias"], tails

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        tails = (params[f"tail_{i}"] for i in range(len(self.cutoffs)))
        return (("words", self.cutoffs[0] + sum(map(len, tails)), len(tables["rank"])),)
