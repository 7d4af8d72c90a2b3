"""A word's vector from its letters: see zoo.networks.char_convolution."""

import dataclasses

import jax

from zoo.arrays.types import Params, Tables
from zoo.embeddings.embedding import Embedding
from zoo.errors import check_least
from zoo.lexicon import Lexicon
from zoo.networks.char_convolution import Convolution


@dataclasses.dataclass(frozen=True)
class CharCNN(Embedding):
    """e(x) = the convolution over the spelling of x; every distinct word of a batch once.

    Labeau and Allauzen (2017), section 2.1, by default; for Kim et al. (2016), table 2, small:
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
        """The padded spellings: see Convolution.tables."""
        return self.network.tables(lexicon)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """How many words were cut, or have unknown letters."""
        return self.network.spelling.warnings(lexicon, "embedding")

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """The parameters for another lexicon: unchanged, for none is of a word. UserError if the
        letters are others."""
        self.network.spelling.same_letters(lexicon, other)
        return params

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """The parameters of the convolution; see Convolution.init."""
        return self.network.init(key, self.size, lexicon)

    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """words int32 [...] -> [..., E]."""
        return self.network.distinct_vectors(params, tables, words)
