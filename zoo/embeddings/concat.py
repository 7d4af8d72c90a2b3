"""Concatenation of several vectors of a word.

Concat((Lookup(128), CharCNN(128))), a vector of the word and a vector of its letters, is the "CWE"
of Labeau and Allauzen (2017), section 2.2.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.arrays import sharded_functions
from zoo.arrays.sharded_functions import Axes
from zoo.arrays.types import Params
from zoo.embeddings.embedding import Embedding
from zoo.errors import UserError
from zoo.lexicon import Lexicon


@dataclasses.dataclass(frozen=True)
class Concat(Embedding):
    """e(x) = e_1(x) : e_2(x) : ..., with : for concatenation.

    Attributes:
      parts: the embeddings.

    Example:
      >>> embedding = embeddings.Concat((embeddings.Lookup(size=4), embeddings.CharCNN(size=3)))
      >>> params, tables = embedding.init(key, lexicon), embedding.tables(lexicon)
      >>> embedding.size, embedding.apply(params, tables, words).shape
      (7, (2, 2, 7))
    """

    parts: tuple[Embedding, ...]

    def __post_init__(self):
        if not self.parts:
            raise UserError("parts of Concat is empty: give at least one embedding.")

    @property
    def size(self) -> int:
        """E, the sum of the parts' sizes."""
        return sum(part.size for part in self.parts)

    @property
    def row_tables(self) -> tuple[str, ...]:
        parts = enumerate(self.parts)
        return tuple(f"{number}/{name}" for number, part in parts for name in part.row_tables)

    @property
    def parameter_axes(self) -> Axes:
        axes = [part.parameter_axes.items() for part in self.parts]
        return {f"{number}/{name}": n for number, part in enumerate(axes) for name, n in part}

    def tables(self, lexicon: Lexicon) -> Any:
        """Makes the tables of each part, in a tuple."""
        return tuple(part.tables(lexicon) for part in self.parts)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Returns the warnings of the parts, with the part's number if several parts have some."""
        of_parts = [(number, part.warnings(lexicon)) for number, part in enumerate(self.parts)]
        of_parts = [(number, notes) for number, notes in of_parts if notes]
        if len(of_parts) == 1:
            return of_parts[0][1]
        return {
            f"{name}, part {number}": n for number, notes in of_parts for name, n in notes.items()
        }

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Returns the parameters of each part for another lexicon; see Embedding.for_lexicon."""
        return {
            str(number): part.for_lexicon(params[str(number)], lexicon, other)
            for number, part in enumerate(self.parts)
        }

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises {"0": parameters of the first part, ...}."""
        keys = jax.random.split(key, len(self.parts))
        parts = zip(self.parts, keys, strict=True)
        return {str(number): part.init(k, lexicon) for number, (part, k) in enumerate(parts)}

    @sharded_functions.over_tokens("words", axes=0)
    def apply(self, params: Params, tables: Any, words: jax.Array) -> jax.Array:
        """Computes the vectors of words int32 [...], [..., E]."""
        vectors = [
            part.apply(params[str(number)], tables[number], words)
            for number, part in enumerate(self.parts)
        ]
        return jnp.concatenate(vectors, axis=-1)
