"""Former names of what components have: they work for a release, and warn."""

import inspect
import warnings
from typing import TYPE_CHECKING, ClassVar


class FormerNames:
    """A base whose methods and properties have had other names.

    A former name that is asked for gives what has its place now; one that a subclass defines is
    taken for the present one.
    """

    # {former: present}
    former_names: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **options):
        """Gives the methods that the class has by former names their present ones."""
        super().__init_subclass__(**options)
        for former, present in cls.former_names.items():
            own = vars(cls).get(former)
            if inspect.isfunction(own) or isinstance(own, property):
                _warn(cls, former, present)
                setattr(cls, present, own)

    if not TYPE_CHECKING:  # a type checker knows the present names alone

        def __getattr__(self, name):
            """What a former name stands for."""
            present = type(self).former_names.get(name)
            if present is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            _warn(type(self), name, present)
            return getattr(self, present)


def _warn(component, former, present):
    message = f"{component.__name__}.{former} is now {present}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
