"""A recipe derived from another one: values of the fields that differ, by path."""

from collections.abc import Mapping
from typing import Any

from zoo.configuration import field_types
from zoo.configuration.field_paths import Change, all_replaced


def changed(recipe: Any, changes: Mapping[str, Any]) -> Any:
    """Returns a recipe with other values at some paths, set in their order.

    For configs that differ from another one in a few fields, as strict as `--set`:

        changed(base, {"model.head": NCE(samples=100), "training.epochs": 5})

    Args:
      recipe: a frozen dataclass, such as an Experiment.
      changes: {path: value}; a path names fields from the top, and the items of a tuple by their
        numbers from 0, with points between them: "model.embedding.parts.1.size".

    Raises:
      UserError: the recipe does not have a path (the message names the nearest), or a value is not
        of its field's type.

    Example:
      >>> configuration.changed(model, {"head": heads.Softmax(), "core.size": 16}).core.size
      16
    """
    given = []
    for path, value in changes.items():

        def new_value(kind, where, value=value, path=path):
            field_types.check_value(value, kind, path)
            return value

        given.append(Change(path, f"changed: {path}", new_value))
    return all_replaced(recipe, given)
