"""Word vectors from letters, by a convolution: see zoo.networks.char_convolution."""

import dataclasses

import jax

from zoo.arrays import sharded_functions
from zoo.arrays.types import Params, Tables
from zoo.embeddings.embedding import Embedding
from zoo.errors import check_least
from zoo.lexicon import Lexicon
from zoo.networks.char_convolution import Convolution


@dataclasses.dataclass(frozen=True)
class CharCNN(Embedding):
    """e(x) = the convolution over the spelling of x, computed once for each distinct word.

    The default is Labeau and Allauzen (2017), section 2.1. For Kim et al. (2016), table 2, small:
    Convolution(letter_size=15, widths=(1, 2, 3, 4, 5, 6), filters=(25, 50, 75, 100, 125, 150),
    pooling="max", activation="tanh", highway=1).

    Attributes:
      size: E.
      network: the convolution.

    Example:
      >>> embedding = embeddings.CharCNN(size=4)
      >>> params, tables = embedding.init(key, lexicon), embedding.tables(lexicon)
      >>> embedding.apply(params, tables, words).shape
      (2, 2, 4)
    """

    size: int = 128
    network: Convolution = Convolution()

    def __post_init__(self):
        check_least(self, size=1)

    def tables(self, lexicon: Lexicon) -> Tables:
        """Makes the padded spellings; see Convolution.tables."""
        return self.network.tables(lexicon)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words that were cut, or that have unknown letters."""
        return self.network.spelling.warnings(lexicon, "embedding")

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Returns the parameters unchanged: they depend on letters only.

        Args:
          params: the parameters of training.
          lexicon: the lexicon of training.
          other: the new lexicon.

        Raises:
          UserError: the lexicons have different alphabets.
        """
        self.network.spelling.same_letters(lexicon, other)
        return params

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises the parameters of the convolution; see Convolution.init."""
        return self.network.init(key, self.size, lexicon)

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """Computes the vectors of words int32 [...], [..., E]."""
        return self.network.distinct_vectors(params, tables, words)
