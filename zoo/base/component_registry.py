"""Names of components in saved recipes, such as "zoo.heads:NCE": the exporting package and class.

A component is a frozen dataclass that one of `PACKAGES` exports. The module that defines a class is
not part of its name, so that classes can move between modules.
"""

import dataclasses
import importlib
import inspect
import sys
from types import ModuleType
from typing import Any, ClassVar

# The packages whose exported classes a recipe may name.
PACKAGES = (
    *("zoo", "zoo.lab.adaptation", "zoo.alignment", "zoo.attention", "zoo.cores", "zoo.data"),
    *("zoo.embeddings", "zoo.heads", "zoo.lexicon", "zoo.models", "zoo.layers"),
    *("zoo.optimizers", "zoo.lab.papers", "zoo.priors"),
)
# Frozen dataclasses that hold data, which a recipe does not describe.
_DATA = ("Corpus", "Lexicon", "Model1")


class Component:
    """The base of the contracts of components, whose subclasses are frozen dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def _unwritten(self, method: str) -> TypeError:
        """Makes the error for a component without a method that every one of its kind writes."""
        return TypeError(f"{type(self).__name__} has no method {method}, which its use needs")


def name_of(component: type) -> str:
    """Returns the name of a class in recipes: "package:Class" for zoo's, else "module:Class"."""
    name = component.__qualname__
    # Mostly a package that is imported already exports it.
    packages = PACKAGES if in_zoo(component.__module__) else ()
    for package in (*filter(sys.modules.get, PACKAGES), *packages):
        module = importlib.import_module(package)
        if name in _exported(module) and getattr(module, name) is component:
            return f"{package}:{name}"
    return f"{component.__module__}:{name}"


def component(name: str) -> type | None:
    """Returns the class of zoo with a name in recipes; None for any other name.

    Imports only one of `PACKAGES`.
    """
    package, _, class_name = name.partition(":")
    if package not in PACKAGES:
        return None
    module = importlib.import_module(package)
    value = getattr(module, class_name) if class_name in _exported(module) else None
    is_frozen = dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen  # type: ignore[union-attr]
    return value if isinstance(value, type) and is_frozen else None


def _exported(module: ModuleType) -> list[str]:
    """Returns the names of a package that may be components."""
    return [name for name in getattr(module, "__all__", dir(module)) if name not in _DATA]


def imported(name: str) -> type | None:
    """Returns the component "module:Class" of a module outside zoo that is already imported; None
    if it is not, or if the class is not a dataclass derived from a class of zoo."""
    module, _, class_name = name.partition(":")
    value = getattr(sys.modules.get(module), class_name, None)
    if in_zoo(module) or not isinstance(value, type) or not dataclasses.is_dataclass(value):
        return None
    return value if any(in_zoo(base.__module__) for base in value.__mro__) else None


def in_zoo(module: str) -> bool:
    """Whether a module belongs to zoo."""
    return module.partition(".")[0] == "zoo"


def components(kind: type) -> dict[str, type]:
    """Returns {name: class} of the components derived from a class, abstract ones left out.

    They are taken from `PACKAGES`, and for a class outside zoo also from its own module.
    """
    classes = [
        component(f"{package}:{name}")
        for package in PACKAGES
        for name in _exported(importlib.import_module(package))
    ]
    if not in_zoo(kind.__module__):
        beside = getattr(sys.modules.get(kind.__module__), "__dict__", {}).values()
        classes += [
            value for value in beside if isinstance(value, type) and dataclasses.is_dataclass(value)
        ]
    return {
        value.__name__: value
        for value in classes
        if isinstance(value, type) and issubclass(value, kind) and not inspect.isabstract(value)
    }
