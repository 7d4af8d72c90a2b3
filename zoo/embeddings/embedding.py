"""The contract of an embedding: from words to vectors."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from zoo.arrays.partition import Axes, named
from zoo.arrays.types import Params, Tables
from zoo.errors import UserError
from zoo.lexicon import Lexicon


class Embedding:
    """What every embedding offers. Subclasses are frozen dataclasses; methods are pure functions.

    tables(lexicon) -> pytree of arrays, what the embedding needs to know of the words
    init(key, lexicon) -> params
    apply(params, tables, words [...]) -> [..., E]
    for_lexicon(params, lexicon, other) -> params for another lexicon than the trained one
    partition(lexicon) -> names of the axes of the parameters, a tree like `init`'s
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # As Head.kinds and Head.ordered_by_frequency.
    kinds: tuple[str, ...] | None = None
    ordered_by_frequency: bool = False

    if TYPE_CHECKING:  # a field of most, without a value here

        @property
        def size(self) -> int: ...

    @property
    def row_tables(self) -> tuple[str, ...]:
        """Names of the parameters that `apply` reads by `zoo.arrays.row_lookup.take` alone; see
        Head.row_tables. None, unless an embedding says otherwise."""
        return ()

    @property
    def parameter_axes(self) -> Axes:
        """Names of the axes of the parameters that have some: see `partition`."""
        return {}

    def partition(self, lexicon: Lexicon) -> Params:
        """The names of the axes of the parameters, a tree like `init`'s; see Head.partition."""
        shapes = jax.eval_shape(lambda: self.init(jax.random.key(0), lexicon))
        return named(shapes, self.parameter_axes)

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """The parameters at the start of training; every embedding writes this itself."""
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")

    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """The vectors of words int32 [...], [..., E]; every embedding writes this itself."""
        raise TypeError(f"{type(self).__name__} has no method apply, which its use needs")

    def tables(self, lexicon: Lexicon) -> Tables:
        """The arrays that the embedding needs to know of the words; none, unless an embedding has
        some."""
        return {}

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """The parameters for words that were not there in training; UserError if there are none."""
        raise UserError(
            f"{type(self).__name__} embeddings know nothing of words that they were not trained "
            "on: CharCNN, Features, Lookup and Concat of these can take another lexicon."
        )

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """What was lost of the words, by name, such as how many were cut; kept in passports."""
        return {}
