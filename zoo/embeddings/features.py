"""A vector a feature, summed over the features of a word.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 5.3: the input of the network is the same
feature representation as its output, under a linear layer.
"""

import dataclasses

import jax

from zoo.arrays.partition import FEATURES, HIDDEN, axes
from zoo.arrays.types import Params, Tables
from zoo.embeddings.embedding import Embedding
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon, signatures


@dataclasses.dataclass(frozen=True)
class Features(Embedding):
    """e(x) = sum_f phi_f(x) table[f].

    Attributes:
      size: E.
      initial_scale: the table starts uniform in +-initial_scale.
      kinds: the features taken, by the part of their names before the colon ("Word", "POS"); all if
        empty. So the features of the input may differ from those of the head.

    Example:
      >>> known = with_features(lexicon, [{"POS:DET": 1}, {"POS:NOUN": 1}, {"POS:VERB": 1}])
      >>> embedding = embeddings.Features(size=4)
      >>> params, tables = embedding.init(key, known), embedding.tables(known)
      >>> params["table"].shape, embedding.apply(params, tables, words).shape
      ((3, 4), (2, 2, 4))
    """

    size: int = 256
    initial_scale: float = 0.05
    kinds: tuple[str, ...] = ()

    parameter_axes = axes(table=(FEATURES, HIDDEN))

    def __post_init__(self):
        check_least(self, size=1)

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """The parameters for another lexicon: unchanged, for none is of a word. UserError if the
        features are others."""
        lexicon.same_features(other)
        return params

    def tables(self, lexicon: Lexicon) -> Tables:
        """The signatures: see Lexicon.tables."""
        return lexicon.of_kinds(self.kinds).tables()

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """{"table": [F, E]}; UserError if the lexicon has no features."""
        if not lexicon.feature_names:
            raise UserError(
                "embeddings.Features needs words with features, and this lexicon has none: "
                "give the config's vocabulary some, or use embeddings.Lookup."
            )
        count = len(lexicon.of_kinds(self.kinds).feature_names)
        shape, scale = (count, self.size), self.initial_scale
        return {"table": jax.random.uniform(key, shape, minval=-scale, maxval=scale)}

    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """words int32 [...] -> [..., E]."""
        return signatures.sum_features_of(tables, params["table"], words)
