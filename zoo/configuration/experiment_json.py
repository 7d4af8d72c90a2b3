"""Recipes as JSON and as text, and the first difference of two."""

import dataclasses
import typing
from typing import Any

from zoo.base import component_registry
from zoo.base.trust import permissions
from zoo.configuration import fields
from zoo.errors import UserError

# Fields that came later than the others of their component: where they are missing, they have their
# defaults, with which older recipes were trained.
_LATER = (
    *("zoo.cores:Bidirectional.layers", "zoo.cores:LSTM.peepholes"),
    *("zoo.models:SequenceToSequence.bridge", "zoo.models:SequenceToSequence.input_feeding"),
    *("zoo.models:SequenceToSequence.source_boundary", "zoo:Parallel.fsdp"),
)


def to_json(value: Any) -> Any:
    """Converts a recipe to JSON: a dataclass becomes {"component": "zoo.heads:NCE", field: ...}.

    Fields that do not count when components are compared are left out.

    Example:
      >>> configuration.to_json(embeddings.Lookup(8))
      {'component': 'zoo.embeddings:Lookup', 'size': 8, 'initial_scale': 0.05}
    """
    if dataclasses.is_dataclass(value):
        values = {name: to_json(getattr(value, name)) for name in fields.field_names(value)}
        return {"component": component_registry.name_of(type(value)), **values}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    return value


def from_json(value: Any, *, origin: Any = "the recipe in JSON") -> Any:
    """Makes the recipe from the JSON of `to_json`.

    The recipe may come from somebody else: no function that it names is run, and no file read
    outside the working folder and $ZOO_DATA, unless the user permits it (see
    `zoo.base.trust.permissions`).

    Args:
      value: JSON, in which every component has all of its fields.
      origin: the file or folder of the JSON, for messages.

    Raises:
      UserError: a component is not trusted (see `zoo.base.trust.permissions`) or cannot be
        imported, has other fields, or a field of another type.

    Example:
      >>> configuration.from_json(configuration.to_json(model)) == model
      True
    """
    permissions.close(permissions.names_in(value), origin)
    return _from_json(value, "")


def _from_json(value, path):
    if isinstance(value, dict):
        name = value.get("component")
        if not isinstance(name, str):
            raise UserError(
                f"the saved recipe has the component {name!r}, which is not a name: restore a copy "
                "of it."
            )
        component = permissions.component(name)
        if not dataclasses.is_dataclass(component):
            raise UserError(f"the saved recipe has the component {name}, which is not a dataclass.")
        values = {
            field: _from_json(item, f"{path}.{field}" if path else field)
            for field, item in value.items()
            if field != "component"
        }
        unknown = set(values) - set(fields.field_names(component))
        if unknown:
            raise UserError(
                f"{name} does not have the fields {', '.join(sorted(unknown))} of "
                "the saved recipe: use the version that saved it."
            )
        _check_fields(component, values, name, path)
        return component(**values)
    if isinstance(value, list):
        return tuple(_from_json(item, f"{path}.{i}") for i, item in enumerate(value))
    return value


def _check_fields(component, values, name, path):
    """Raises UserError unless all fields of a component have values of their types. It is called
    before the component is made, whose own checks rely on the types."""
    kinds = typing.get_type_hints(component)
    for field in dataclasses.fields(component):
        field_path = f"{path}.{field.name}" if path else field.name
        is_later = f"{name}.{field.name}" in _LATER
        is_required = field.default is field.default_factory is dataclasses.MISSING
        if field.name in values:
            fields.check_value(values[field.name], kinds[field.name], field_path)
        # A field that is None by default stands for what is left out: older recipes lack it.
        elif not is_later and field.default is not None and (field.compare or is_required):
            raise UserError(
                f"{name} has no field {field_path} in the saved recipe: write its value there, "
                "restore a copy of the recipe, or use the version that saved it."
            )


def describe(value: Any, indent: str = "") -> str:
    """Returns the recipe as text, a field a line, components with their fields below them.

    Example:
      >>> print(configuration.describe(cores.NGram(size=4)))
      NGram
        size = 4
        order = 3
        layers = 1
        dropout = 0.0
        input_dropout = 0.0
    """
    lines = [type(value).__name__]
    for name in fields.field_names(value):
        item = getattr(value, name)
        if dataclasses.is_dataclass(item) and fields.field_names(item):
            lines.append(f"{indent}  {name}: {describe(item, indent + '  ')}")
        else:
            lines.append(f"{indent}  {name} = {item!r}")
    return "\n".join(lines)


def brief(value: Any) -> str:
    """Returns a component as an expression, without the fields that have their defaults.

    Example:
      >>> print(configuration.brief(models.LanguageModel(core=cores.LSTM(size=8))))
      LanguageModel(core=LSTM(size=8))
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(brief, value))}{',' if len(value) == 1 else ''})"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    names = fields.changed_fields(value)
    return f"{type(value).__name__}({', '.join(f'{n}={brief(getattr(value, n))}' for n in names)})"


def first_difference(first: Any, second: Any, path: str = "") -> str | None:
    """Returns 'field: value against value' of the first difference of two JSON recipes, or None.

    Example:
      >>> other = configuration.changed(model, {"head.samples": 6})
      >>> configuration.first_difference(configuration.to_json(model), configuration.to_json(other))
      'head.samples: 5 against 6'
    """
    if isinstance(first, dict) and isinstance(second, dict):
        for name in [*first, *(name for name in second if name not in first)]:
            below = f"{path}.{name}" if path else name
            difference = first_difference(first.get(name), second.get(name), below)
            if difference:
                return difference
        return None
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = zip(map(str, range(len(first))), first, second, strict=True)
        differences = (first_difference(a, b, f"{path}.{name}") for name, a, b in pairs)
        return next(filter(None, differences), None)
    return None if first == second else f"{path}: {first!r} against {second!r}"
