"""The interface of models: components composed into something that an experiment trains."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from zoo.arrays.types import Params, Tables
from zoo.lexicon import Lexicon
from zoo.priors.backgrounds.contextual import Contextual


class Model:
    """A model of some kind. Subclasses are frozen dataclasses of components, with pure methods.

    A kind of model is trained by its task: see zoo.training.tasks.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    # Names in a run's folder of the lexicons that `init` and the tables take, in their order; the
    # first has the words that are predicted.
    lexicon_names: ClassVar[tuple[str, ...]] = ("lexicon",)

    # A prior that has to be prepared from the texts, or None.
    if TYPE_CHECKING:  # a field of some models

        @property
        def background(self) -> Contextual | None: ...

    else:
        background = None

    def init(self, key: jax.Array, lexicon: Lexicon, *others: Lexicon) -> Params:
        """Initialises the parameters; subclasses override it.

        Args:
          key: of `jax.random`.
          lexicon: the first lexicon of `lexicon_names`.
          *others: the other lexicons.
        """
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")

    def evaluation_tables(self, lexicon: Lexicon, *others: Lexicon) -> Tables:
        """Returns the tables for exact probabilities; subclasses override it."""
        raise TypeError(f"{type(self).__name__} has no evaluation_tables, which its use needs")

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        """Counts the words for which components lack information, by reason; see Head.warnings."""
        return {}

    def component(self, part: str) -> Any:
        """Returns the component of a group of parameters, as `init` names it."""
        return getattr(self, part)
