"""A change of a trained run for its evaluation, such as a cache."""

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from zoo.lab.options import Option

if TYPE_CHECKING:
    from zoo.lab.evaluation.run import Run
AnyRun = TypeVar("AnyRun", bound="Run")


@dataclasses.dataclass(frozen=True)
class Change:
    """Base class of changes; their fields are what passports keep of them."""

    # in passports, and by default in the names of results
    name: ClassVar[str]
    # any of them asks for the change
    options: ClassVar[tuple[Option, ...]]
    # Whether figures of the changed run stand in a column of their own.
    apart: ClassVar[bool] = False
    # Whether the changed run learns from the text that it is judged on.
    learns: ClassVar[bool] = False

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace, run: "Run") -> Self:
        """Returns the change that a command line asks for, with settings that validation gives."""
        raise NotImplementedError

    @classmethod
    def from_recipe(cls, run: "Run") -> Self | None:
        """Returns the change as a part of the run's recipe, if models are trained with it."""
        return None

    def apply(self, run: AnyRun) -> AnyRun:
        """Returns the run with the change."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The change in the name of a result's file; equal for figures that are comparable."""
        return self.name

    @property
    def title(self) -> str:
        """The change in the name of a table."""
        return self.name

    @property
    def column(self) -> str:
        """The change in the name of a column, if it is `apart`."""
        return self.title

    @property
    def sentence(self) -> str:
        """The change told to people, with its settings."""
        raise NotImplementedError

    @property
    def note(self) -> str | None:
        """A remark on settings that validation gave."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Returns the change as passports keep it."""
        return {"change": self.name, **dataclasses.asdict(self)}
