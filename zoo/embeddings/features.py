"""Word vectors as sums of the vectors of the word's features.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 5.3: the input of the network is the feature
representation of the output, followed by a linear layer.
"""

import dataclasses

import jax

from zoo.arrays import sharded_functions
from zoo.arrays.sharded_functions import FEATURES, HIDDEN, axes
from zoo.arrays.types import Params, Tables
from zoo.embeddings.embedding import Embedding
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon, feature_signatures


@dataclasses.dataclass(frozen=True)
class Features(Embedding):
    """e(x) = sum_f phi_f(x) table[f].

    Attributes:
      size: E.
      initial_scale: the table is initialised uniformly in +-initial_scale.
      kinds: the features taken, by the part of their names before the colon ("Word", "POS"); all if
        empty. So input and head may have different features.

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
        """Returns the parameters unchanged: they depend on features only.

        Args:
          params: the parameters of training.
          lexicon: the lexicon of training.
          other: the new lexicon.

        Raises:
          UserError: the lexicons have different features.
        """
        lexicon.same_features(other)
        return params

    def tables(self, lexicon: Lexicon) -> Tables:
        """Makes the tables of signatures; see Lexicon.tables."""
        return lexicon.of_kinds(self.kinds).tables()

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises {"table": [F, E]}.

        Args:
          key: random key.
          lexicon: words with features.

        Raises:
          UserError: the lexicon has no features.
        """
        if not lexicon.feature_names:
            raise UserError(
                "embeddings.Features needs words with features, and this lexicon has none: "
                "give the config's vocabulary some, or use embeddings.Lookup."
            )
        count = len(lexicon.of_kinds(self.kinds).feature_names)
        shape, scale = (count, self.size), self.initial_scale
        return {"table": jax.random.uniform(key, shape, minval=-scale, maxval=scale)}

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """Computes the vectors of words int32 [...], [..., E]."""
        return feature_signatures.sum_features_of(tables, params["table"], words)
