"""What an experiment trains."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from zoo.arrays.types import Params
from zoo.lexicon import Lexicon
from zoo.priors.contextual import Contextual


class Model:
    """A model of some kind. Subclasses are frozen dataclasses of components, with pure methods.

    A kind of model is trained by its task: see zoo.training.tasks.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    # A prior that has to be prepared from the texts, or None.
    if TYPE_CHECKING:  # a field of some models

        @property
        def background(self) -> Contextual | None: ...

    else:
        background = None

    def init(self, key: jax.Array, lexicon: Lexicon) -> Params:
        """The parameters at the start of training; every model of words writes this itself."""
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")
