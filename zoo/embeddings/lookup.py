"""One trained vector for each word."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.arrays import row_lookup, sharded_functions
from zoo.arrays.sharded_functions import HIDDEN, WORDS, axes
from zoo.arrays.types import Params, Tables
from zoo.embeddings.embedding import Embedding
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon
from zoo.losses import value_checks


@dataclasses.dataclass(frozen=True)
class Lookup(Embedding):
    """e(x) = table[x].

    Attributes:
      size: E.
      initial_scale: the table is initialised uniformly in +-initial_scale.

    Example:
      >>> embedding = embeddings.Lookup(size=4)
      >>> params, tables = embedding.init(key, lexicon), embedding.tables(lexicon)
      >>> embedding.apply(params, tables, words).shape
      (2, 2, 4)
    """

    size: int = 256
    initial_scale: float = 0.05

    row_tables = ("table",)
    parameter_axes = axes(table=(WORDS, HIDDEN))

    def __post_init__(self):
        check_least(self, size=1)

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises {"table": [V, E]}."""
        shape, scale = (len(lexicon), self.size), self.initial_scale
        return {"table": jax.random.uniform(key, shape, minval=-scale, maxval=scale)}

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Returns the vectors of the words of another lexicon; new words get the unknown word's.

        Args:
          params: the parameters of training.
          lexicon: the lexicon of training.
          other: the new lexicon.

        Raises:
          UserError: the other lexicon has new words, and `lexicon` has no unknown word.
        """
        unknown = None if lexicon.unknown is None else lexicon.ids.get(lexicon.unknown)
        ids = [lexicon.ids.get(word, unknown) for word in other.words]
        if None in ids:
            raise UserError(
                f"the word {other.words[ids.index(None)]!r} is not in the lexicon of training, "
                "which has no unknown word: train with vocabulary.unknown counted or skipped, or "
                "with embeddings of letters."
            )
        return {"table": params["table"][jnp.asarray(ids)]}

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """Computes the vectors of words int32 [...], [..., E].

        Raises:
          ValueError: a word is not a row of the table.
        """
        value_checks.check_ids(params["table"].shape[0], words=words)
        return row_lookup.take(params["table"], words)
