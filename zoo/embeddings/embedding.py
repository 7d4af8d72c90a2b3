"""The contract of embeddings, which compute vectors of words."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from zoo.arrays.sharded_functions import Axes, named
from zoo.arrays.types import Params, Tables
from zoo.errors import UserError
from zoo.lexicon import Lexicon


class Embedding:
    """The contract of embeddings. Subclasses are frozen dataclasses; methods are pure functions.

    tables(lexicon) -> pytree of arrays of the words that the embedding needs
    init(key, lexicon) -> params
    apply(params, tables, words [...]) -> [..., E]
    for_lexicon(params, lexicon, other) -> params for another lexicon than the one of training
    partition(lexicon) -> names of the axes of the parameters, a tree like the one of `init`
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
        """Names of the parameters that `apply` reads only by `zoo.arrays.row_lookup.take`.

        Empty by default. See Head.row_tables.
        """
        return ()

    @property
    def parameter_axes(self) -> Axes:
        """Axis names of the parameters, empty by default; see `parameter_sharding`."""
        return {}

    def partition(self, lexicon: Lexicon) -> Params:
        """Returns the axis names of the parameters, a tree like the one of `init`.

        Args:
          lexicon: the words. See Head.partition.
        """
        shapes = jax.eval_shape(lambda: self.init(jax.random.key(0), lexicon))
        return named(shapes, self.parameter_axes)

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """Initialises the parameters; every embedding writes this itself.

        Args:
          key: random key.
          lexicon: the words.
        """
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")

    def apply(self, params: Params, tables: Tables, words: jax.Array) -> jax.Array:
        """Computes the vectors of words; every embedding writes this itself.

        Args:
          params: the parameters of `init`.
          tables: the arrays of `tables`.
          words: int32 [...].

        Returns:
          [..., E].
        """
        raise TypeError(f"{type(self).__name__} has no method apply, which its use needs")

    def tables(self, lexicon: Lexicon) -> Tables:
        """Makes the arrays of the words that the embedding needs; {} by default.

        Args:
          lexicon: the words.
        """
        return {}

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Returns the parameters for another lexicon than the one of training.

        Args:
          params: the parameters of training.
          lexicon: the lexicon of training.
          other: the new lexicon.

        Raises:
          UserError: the embedding cannot take another lexicon, which is the default.
        """
        raise UserError(
            f"{type(self).__name__} embeddings cannot take a lexicon other than the one of "
            "training: use CharCNN, Features, Lookup, or a Concat of these."
        )

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words of which the embedding loses something, such as words that are cut.

        Args:
          lexicon: the words.

        Returns:
          {description: number of words}, which passports keep; {} by default.
        """
        return {}
