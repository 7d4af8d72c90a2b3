"""The contract of a model: components put together, which an experiment trains."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from zoo.arrays.types import Params, Tables
from zoo.lexicon import Lexicon
from zoo.priors.contextual import Contextual


class Model:
    """A model of some kind. Subclasses are frozen dataclasses of components, with pure methods.

    A kind of model is trained by its task: see zoo.training.tasks.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    # What the lexicons are called in a work directory that `init` and the tables are made of, in
    # their order; the first is of the words that are predicted.
    lexicon_names: ClassVar[tuple[str, ...]] = ("lexicon",)

    # A prior that has to be prepared from the texts, or None.
    if TYPE_CHECKING:  # a field of some models

        @property
        def background(self) -> Contextual | None: ...

    else:
        background = None

    def init(self, key: jax.Array, lexicon: Lexicon, *others: Lexicon) -> Params:
        """The parameters at the start of training; every model of words writes this itself.

        Args:
          lexicon: the first of those that `lexicon_names` names.
          *others: the others of them.
        """
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")

    def evaluation_tables(self, lexicon: Lexicon, *others: Lexicon) -> Tables:
        """The tables that exact probabilities need of the words; every model writes this itself."""
        raise TypeError(f"{type(self).__name__} has no evaluation_tables, which its use needs")

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts of what the components lost of the words, by name; see Head.warnings."""
        return {}

    def component(self, part: str) -> Any:
        """The component that a part of the parameters, as `init` names it, belongs to."""
        return getattr(self, part)
