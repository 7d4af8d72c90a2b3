"""A walk over all components and fields of a recipe."""

import dataclasses
from collections.abc import Iterator
from typing import Any


def field_names(component: Any) -> list[str]:
    """Returns the fields of a dataclass, or of its instance, that are part of a recipe: those that
    count when components are compared."""
    return [field.name for field in dataclasses.fields(component) if field.compare]


def required_fields(component: type) -> list[str]:
    """Returns the fields of a dataclass that have no default."""
    absent = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(component)
        if field.init and field.default is absent and field.default_factory is absent
    ]


def changed_fields(component: Any) -> list[str]:
    """Returns the fields of a component that do not have their defaults, required ones included."""
    absent = dataclasses.MISSING
    names = []
    for field in dataclasses.fields(component):
        default = field.default
        if field.default_factory is not absent:
            default = field.default_factory()
        value = getattr(component, field.name)
        if field.compare and (
            default is absent or type(value) is not type(default) or value != default
        ):
            names.append(field.name)
    return names


def values(recipe: Any, path: str = "", name: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yields (dotted path, name of the field, value) of everything within a recipe, from the top
    down.

    A tuple is yielded whole, and then item by item, numbered from 0 in the path, under the name of
    its field. A component is yielded before its fields.
    """
    if dataclasses.is_dataclass(recipe) and not isinstance(recipe, type):
        inner = [(field, field, getattr(recipe, field)) for field in field_names(recipe)]
    elif isinstance(recipe, tuple):
        inner = [(str(index), name, value) for index, value in enumerate(recipe)]
    else:
        return
    for step, field, value in inner:
        inside = f"{path}.{step}" if path else step
        yield inside, field, value
        yield from values(value, inside, field)
