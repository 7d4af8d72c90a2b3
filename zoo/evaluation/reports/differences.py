"""Fields in which the recipes of compared runs differ, and the texts that gave knowledge of words.

A table of figures names runs by their folders and heads. Two runs with the same head may differ in
their features, their background or the files that these were made from.
"""

from collections.abc import Iterable, Mapping
from typing import Any

# Fields in which runs of one row, or of one model on other devices, may differ.
LEFT_OUT = ("training.seed", "parallel", "evaluation")
COMPONENT = "component"
# Stands for a field that a recipe does not have.
ABSENT: Any = object()


def lines(recipes: Mapping[str, dict], knowledge: Mapping[str, list | None]) -> list[str]:
    """Returns a line for each value of each field in which recipes differ; [] if none does."""
    if len(recipes) < 2:
        return []
    found = ["fields in which the runs differ:"]
    for path in differing([*recipes.values()]):
        found += _values(path, {name: told(_at(of, path)) for name, of in recipes.items()})
    sources = {name: _sources(texts) for name, texts in knowledge.items() if name in recipes}
    if len({*sources.values()}) > 1:
        found += _values("words, features and background from", sources)
    return found if len(found) > 1 else []


def differing(recipes: list[Any], path: str = "") -> list[str]:
    """Returns the dotted paths of the outermost fields that differ, in the order of the fields.

    Two components of one class are compared field by field, and other values as a whole. A field
    that the recipe of an older record does not have yet was off: it does not differ from 0, False,
    empty or null.
    """
    there = [one for one in recipes if one is not ABSENT]
    first, *others = there
    absent = len(there) < len(recipes)
    if path in LEFT_OUT or (all(other == first for other in others) and not (absent and first)):
        return []
    if absent or not all(_of_one_class(first, other) for other in others):
        return [path]
    fields = dict.fromkeys(name for one in recipes for name in one if name != COMPONENT)
    return [
        found
        for name in fields
        for found in differing(
            [one.get(name, ABSENT) for one in recipes], f"{path}.{name}" if path else name
        )
    ]


def _of_one_class(one, other):
    """Whether two values are objects of the same class."""
    both = isinstance(one, dict) and isinstance(other, dict)
    return both and one.get(COMPONENT) == other.get(COMPONENT)


def told(value: Any) -> str:
    """Formats a value of a recipe; components are written as calls, without their empty fields."""
    if isinstance(value, dict) and isinstance(value.get(COMPONENT), str):
        fields = (f"{name}={told(item)}" for name, item in value.items() if _is_set(name, item))
        return f"{value[COMPONENT].rpartition(':')[2]}({', '.join(fields)})"
    if isinstance(value, list):
        items = ", ".join(map(told, value))
        return items if len(value) == 1 else f"({items})"
    return "none" if value is None or value == "" else str(value)


def _is_set(name, value):
    return name != COMPONENT and value is not None and value not in ("", [])


def _at(recipe, path):
    for name in path.split("."):
        recipe = recipe.get(name)
    return recipe


def _values(title: str, value_of: Mapping[str, str]) -> Iterable[str]:
    """Yields a line for each distinct value, with the runs that have it."""
    runs: dict = {}
    for name, value in value_of.items():
        runs.setdefault(value, []).append(name)
    yield from (f"  {title}: {value} ({'; '.join(names)})" for value, names in runs.items())


def _sources(texts):
    """Formats the texts that gave knowledge of words, with the beginnings of their digests."""
    if texts is None:
        return "not recorded"
    return "; ".join(
        f"{text['text']} [{text['digest'][:8]}]: {', '.join(text['gave'])}" for text in texts
    )
