"""The hierarchical softmax, over classes and a class's words: see `zoo.losses.hierarchical`."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from zoo.base.arrays.parameter_sharding import HIDDEN, WORDS, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params, Tables
from zoo.errors import check_least
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.lexicon.lexicon import frequency_tables
from zoo.losses import hierarchical


@dataclasses.dataclass(frozen=True)
class HierarchicalSoftmax(Head):
    """A softmax over classes of words and one over the words of a class.

    The rows of W are gathered by blocks of tokens, forward and backward, so that at most
    `zoo.losses.hierarchical.GATHERED_AT_A_TIME` numbers are held. Row-sparse training, whose
    gradients have a row for each lookup, holds the M rows of every token at once.

    Attributes:
      classes: C; 0 for the square root of V.
      initial_scale: vectors start uniform in +-initial_scale.

    Example:
      >>> head = heads.HierarchicalSoftmax(classes=2)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    classes: int = 0
    initial_scale: float = 0.05

    row_tables = ("weights", "bias")
    ordered_by_frequency = True
    # Cut between classes.
    parameter_axes = axes(
        classes=(WORDS, HIDDEN),
        class_bias=(WORDS,),
        weights=(WORDS, None, HIDDEN),
        bias=(WORDS, None),
    )

    array_shapes = Shapes(
        {"classes": "C D", "class_bias": "C", "weights": "C M D", "bias": "C M"},
        {"rank": "int V", "word": "int V"},
    )

    def __post_init__(self):
        check_least(self, classes=0)

    def _shape(self, vocabulary: int):
        """Returns (C, M): the fewest classes that hold the vocabulary in classes of M words."""
        class_count = min(self.classes or math.isqrt(vocabulary), vocabulary)
        class_size = -(-vocabulary // class_count)
        return -(-vocabulary // class_size), class_size

    def _tables(self, lexicon: Lexicon) -> Tables:
        return frequency_tables(lexicon.counts)

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"classes" R [C, D], "class_bias" r [C], "weights" W [C, M, D], "bias" b [C, M]}.

        Positions beyond the V-th hold no word and are masked wherever they are read.
        """
        class_count, class_size = self._shape(len(lexicon))
        class_key, word_key = jax.random.split(key)
        scale = self.initial_scale
        return {
            "classes": uniform(class_key, (class_count, hidden_size), scale),
            "class_bias": jnp.zeros(class_count),
            "weights": uniform(word_key, (class_count, class_size, hidden_size), scale),
            "bias": jnp.zeros((class_count, class_size)),
        }

    def _arrays(self, params: Params) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        return params["classes"], params["class_bias"], params["weights"], params["bias"]

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        count, size = params["bias"].shape
        return (("classes of words", count, -(-len(tables["rank"]) // size)),)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        rank = tables["rank"]
        log_prob = -hierarchical.hierarchical_loss(
            hidden, *self._arrays(params), rank[targets], rank.shape[0]
        )
        return log_prob, jnp.zeros_like(log_prob)  # normalised as it stands

    def _log_probs(self, params, tables, hidden, context, prepared):
        arguments = *self._arrays(params), tables["rank"].shape[0]
        return hierarchical.hierarchical_log_probs(hidden, *arguments)[..., tables["rank"]]

    def _top_k(self, params, tables, hidden, k, context, prepared):
        arguments = *self._arrays(params), tables["rank"].shape[0], k
        log_probs, ranks = hierarchical.hierarchical_top_k(hidden, *arguments)
        return log_probs, tables["word"][ranks]

    def _sample(self, params, tables, hidden, key, context, prepared):
        arguments = *self._arrays(params), tables["rank"].shape[0]
        return tables["word"][hierarchical.hierarchical_sample(hidden, *arguments, key)]
