"""Grouping of runs of one recipe that differ in their seed alone, and names of the groups."""

import collections
import itertools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from zoo.errors import UserError

# Ends of names that tell seeds apart: "_0", "-seed3", "/1"; and, where this is not enough, "0".
_SEED_ENDS = (r"[-_./ ](seed|s)?[-_=]?\d+$", r"[-_./ ]?(seed|s)?[-_=]?\d+$")


def group_by_recipe(keys: Mapping[str, tuple[Hashable, Any]]) -> list[tuple[str, ...]]:
    """Groups runs that differ in the seed alone, from {run: (recipe without seed, seed)}; an
    unknown recipe, "", is a group of its own, and a second run of a seed begins another."""
    groups: list[tuple[Hashable, dict[Any, str]]] = []
    for name, (recipe, seed) in keys.items():
        fitting = (names for key, names in groups if recipe and key == recipe and seed not in names)
        names = next(fitting, None)
        if names is None:
            names = {}
            groups.append((recipe, names))
        names[seed] = name
    return [tuple(names.values()) for _, names in groups]


def head_name(recipe: dict) -> str:
    """Returns a recipe's head as written there, such as "zoo.heads:Softmax"; "" if not known."""
    head = (recipe.get("model") or {}).get("head") or {}
    return head.get(COMPONENT) or ""


def name_groups(groups: Sequence[tuple[str, ...]]) -> list[str]:
    """Names groups by their recipe: "softmax, 3 seeds" for softmax_0, softmax_1 and softmax_2; of
    groups that would be named alike, by their first runs."""
    stems = [*map(_stem, groups)]
    names = [
        stem if stems.count(stem) == 1 else group[0]
        for stem, group in zip(stems, groups, strict=True)
    ]
    return [
        name if len(group) == 1 else f"{name}, {len(group)} seeds"
        for name, group in zip(names, groups, strict=True)
    ]


# Heads in the order of their colours: the first six have one of their own.
_HEADS = (
    *("Softmax", "LogLinear", "AdaptiveSoftmax", "NCE", "ImportanceSampling", "MixtureOfSoftmaxes"),
    *("CharLSTM", "CNNSoftmax", "SelfNormalisedSoftmax", "HierarchicalSoftmax", "BlackOut"),
)


def number_recipes(names: Sequence[str], heads: Sequence[str] = ()) -> list[int]:
    """Returns a colour number for each name: the first by name with a head in `_HEADS` gets the
    head's, all others get free numbers."""
    classes = [head.rpartition(":")[2] for head in heads] or [""] * len(names)
    used_numbers = {_HEADS.index(head_class) for head_class in classes if head_class in _HEADS}
    unused_numbers = (number for number in itertools.count() if number not in used_numbers)
    numbers: dict[str, int] = {}
    for name, head_class in sorted(zip(names, classes, strict=True)):
        has_own = head_class in _HEADS and _HEADS.index(head_class) not in numbers.values()
        numbers[name] = _HEADS.index(head_class) if has_own else next(unused_numbers)
    return [numbers[name] for name in names]


def label_runs(groups: Sequence[tuple[str, ...]], labels: Sequence[str]) -> dict[str, str]:
    """Returns {run: label of its group}, with "_0", "_1" ... where the group has several; raises
    UserError unless labels are different and one for each group."""
    label_by_run = {
        run: label if len(group) == 1 else f"{label}_{number}"
        for label, group in zip(labels, groups, strict=False)
        for number, run in enumerate(group)
    }
    names = [*labels], [*label_by_run.values()]
    if len(labels) != len(groups) or any(len({*part}) < len(part) for part in names):
        raise UserError(
            f"--label is given {len(labels)} times for {len(groups)} recipes: give a different one "
            f"for each, in this order: {'; '.join(name_groups(groups))}."
        )
    return label_by_run


def _stem(group):
    """Returns the name that a group's runs share without their seeds, or else the first run's
    without its own; a single run's whole name."""
    if len(group) == 1:
        return group[0]
    for end in _SEED_ENDS:
        stems = {re.sub(end, "", name) for name in group}
        if len(stems) == 1 and "" not in stems:
            return stems.pop()
    return re.sub(_SEED_ENDS[0], "", group[0])


# ---- fields in which the recipes of compared runs differ, and texts that gave knowledge of words
# A table of figures names runs by their folders and heads. Two runs with the same head may differ
# in their features, their background or the files that these were made from.

# Fields in which runs of one row, or of one model on other devices, may differ.
IGNORED_FIELDS = ("training.seed", "parallel", "evaluation")
COMPONENT = "component"
# Stands for a field that a recipe does not have.
ABSENT: Any = object()
# More runs than these are not named one by one below a table.
MOST_NAMED = 4


def compare_recipes(
    recipes: Mapping[str, dict], knowledge: Mapping[str, Sequence | None]
) -> list[str]:
    """Describes the differing fields of {name: recipe}, and differing texts behind words and
    features, a line for each value; [] without any."""
    if len(recipes) < 2:
        return []
    lines = ["fields in which the runs differ:"]
    heads = {name: head_name(recipe) for name, recipe in recipes.items()}
    for path, values in differing_fields([*recipes.values()]):
        value_by_run = dict(zip(recipes, map(format_value, values), strict=True))
        lines += _value_lines(path, value_by_run, heads)
    sources = dict.fromkeys(recipes, "not recorded")
    for name in recipes:
        texts = knowledge.get(name)
        if texts is not None:
            sources[name] = "; ".join(
                f"{text.text} [{text.digest[:8]}]: {', '.join(text.gave)}" for text in texts
            )
    if len({*sources.values()}) > 1:
        lines += _value_lines("words, features and background from", sources, heads)
    return lines if len(lines) > 1 else []


def differing_fields(recipes: list[Any], path: str = "") -> list[tuple[str, list[Any]]]:
    """Returns (dotted path, values) of differing fields; in dicts of one class, of inner fields.

    A field that a recipe lacks equals an empty field; `IGNORED_FIELDS` are skipped.
    """
    present = [recipe for recipe in recipes if recipe is not ABSENT]
    first, *remaining = present
    absent = len(present) < len(recipes)
    is_equal = all(recipe == first for recipe in remaining) and not (absent and first)
    if path in IGNORED_FIELDS or is_equal:
        return []
    are_dicts = all(isinstance(recipe, dict) for recipe in present)
    if absent or not are_dicts or len({recipe.get(COMPONENT) for recipe in present}) > 1:
        return [(path, [None if recipe is ABSENT else recipe for recipe in recipes])]
    fields = dict.fromkeys(name for recipe in recipes for name in recipe if name != COMPONENT)
    return [
        difference
        for name in fields
        for difference in differing_fields(
            [recipe.get(name, ABSENT) for recipe in recipes], f"{path}.{name}" if path else name
        )
    ]


def format_value(value: Any) -> str:
    """Formats a value of a recipe; components are written as calls, without their empty fields."""
    if isinstance(value, dict) and isinstance(value.get(COMPONENT), str):
        fields = {name: inner for name, inner in value.items() if inner not in (None, "", [])}
        name = fields.pop(COMPONENT, "").rpartition(":")[2]
        arguments = ", ".join(f"{field}={format_value(inner)}" for field, inner in fields.items())
        return f"{name}({arguments})"
    if isinstance(value, list):
        items = ", ".join(map(format_value, value))
        return items if len(value) == 1 else f"({items})"
    return "none" if value is None or value == "" else str(value)


def runs_by_line(lines_by_run: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Inverts {run: its lines} into {line: the runs that have it}, in order of appearance."""
    runs: dict[str, list[str]] = {}
    for run, lines in lines_by_run.items():
        for line in lines:
            runs.setdefault(line, []).append(run)
    return runs


def _value_lines(title: str, values: Mapping[str, str], heads: Mapping[str, str]) -> Iterable[str]:
    """Yields a line for each value of a field, with the names of its recipes, or, of many, the
    counts of heads."""
    runs = runs_by_line({name: [value] for name, value in values.items()})
    for value, names in runs.items():
        counts = collections.Counter(heads[name].rpartition(":")[2] for name in names)
        head_counts = ", ".join(f"{count} {head}" for head, count in counts.items())
        summary = f"{len(names)} recipes: {head_counts}"
        yield f"  {title}: {value} ({summary if len(names) > MOST_NAMED else '; '.join(names)})"
