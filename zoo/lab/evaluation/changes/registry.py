"""The kinds of changes, in the order in which a command applies them."""

import argparse
from collections.abc import Iterable

from zoo.base import strict_json
from zoo.lab.evaluation.changes.cache import Cache
from zoo.lab.evaluation.changes.change import AnyRun, Change
from zoo.lab.evaluation.changes.constraint import Constraint
from zoo.lab.evaluation.changes.dynamic_evaluation import DynamicEvaluation
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.changes.renormalised import Renormalised
from zoo.lab.evaluation.changes.temperature import Temperature
from zoo.lab.evaluation.run import Run
from zoo.lab.options import has_any

KINDS: tuple[type[Change], ...] = (
    NewLexicon,
    Renormalised,
    Constraint,
    Cache,
    DynamicEvaluation,
    Temperature,
)


def apply(
    run: AnyRun, arguments: argparse.Namespace, kinds: Iterable[type[Change]] = KINDS
) -> AnyRun:
    """Returns the run with the changes that a command line asks for."""
    for kind in kinds:
        if has_any(arguments, kind.options):
            run = kind.from_arguments(arguments, run).apply(run)
    return run


def changes_of(run: Run) -> tuple[Change, ...]:
    """Returns all changes of a run, first those that are a part of its recipe."""
    applied = {type(change) for change in run.changes}
    trained = (kind.from_recipe(run) for kind in KINDS if kind not in applied)
    return *filter(None, trained), *run.changes


def from_json(value: dict) -> Change:
    """Reads a change of a passport; raises ValueError for another value."""
    name, kinds = value.get("change"), {kind.name: kind for kind in KINDS}
    if name not in kinds:
        raise ValueError(f"changes has {name!r}, not {' or '.join(kinds)}")
    return strict_json.parse(kinds[name], value, f"changes.{name}")
