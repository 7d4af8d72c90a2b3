"""Grouping of runs of one recipe that differ in their seed alone, and names of the groups."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from zoo.errors import UserError
from zoo.evaluation import item_scores
from zoo.evaluation.reports.paired import Runs
from zoo.evaluation.results import recipe_of

# Ends of names that tell seeds apart: "_0", "-seed3", "/1"; and, where this is not enough, "0".
_SEED_ENDS = (r"[-_./ ](seed|s)?[-_=]?\d+$", r"[-_./ ]?(seed|s)?[-_=]?\d+$")


def grouped(names: Iterable[str], results: Mapping[str, Mapping]) -> list[tuple[str, ...]]:
    """Groups runs, in the order of the groups' first runs.

    Runs are of one group if their passports have the same recipe but for the seed, and different
    seeds; a run whose passports do not record its recipe stands alone.
    """
    return _groups({name: _recipe_of(results[name]) for name in names})


def grouped_by_recipe(paths: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Groups runs by their recipes alone, as `grouped`, whether they are judged or not."""
    return _groups({name: _key(recipe_of(path)) for name, path in paths.items()})


def _groups(recipes: Mapping[str, tuple[Hashable, Any]]) -> list[tuple[str, ...]]:
    """Groups {run: (its recipe but for the seed, None if not known; the seed)}."""
    groups: list[dict] = []
    for name, (recipe, seed) in recipes.items():
        for group in groups:
            if recipe and group["recipe"] == recipe and seed not in group["seeds"]:
                break
        else:
            group = {"recipe": recipe, "seeds": set(), "names": []}
            groups.append(group)
        group["seeds"].add(seed)
        group["names"].append(name)
    return [tuple(group["names"]) for group in groups]


def _recipe_of(of_run):
    """Returns (the digest of a run's recipe but for its seed, None if not known; the seed)."""
    training = next(iter(of_run.values())).get("training") or {}
    return training.get("recipe_but_seed") or None, training.get("seed")


def _key(recipe):
    """Returns (an experiment without seed and devices as text, "" without any; its seed)."""
    training = recipe.get("training") or {}
    rest = {**recipe, "parallel": None, "training": {**training, "seed": None}}
    return json.dumps(rest, sort_keys=True) if recipe else "", training.get("seed")


def names_of(
    groups: Sequence[tuple[str, ...]], labels: Sequence[str] = ()
) -> dict[tuple[str, ...], str]:
    """Names groups by their recipe: "softmax, 3 seeds" for softmax_0, softmax_1 and softmax_2.

    A single run keeps its name.
    """
    counts = [len(group) for group in groups]
    stems = stems_of(groups)
    names = [_counted(*pair) for pair in zip(stems, counts, strict=True)]
    if labels:
        check_labels(labels, names)
        names = [_counted(*pair) for pair in zip(labels, counts, strict=True)]
    return dict(zip(groups, names, strict=True))


def labelled(groups: Sequence[tuple[str, ...]], labels: Sequence[str] = ()) -> dict[str, str]:
    """Names runs by the labels of their recipes, with a number where a recipe has several runs."""
    if not labels:
        return {run: run for group in groups for run in group}
    check_labels(labels, stems_of(groups))
    return {
        run: label if len(group) == 1 else f"{label}_{number}"
        for label, group in zip(labels, groups, strict=True)
        for number, run in enumerate(group)
    }


def check_labels(labels: Sequence[str], names: Sequence[str]):
    """Raises UserError unless labels are different and one for each of the names."""
    if len(labels) != len(names) or len({*labels}) < len(labels):
        raise UserError(
            f"--label is given {len(labels)} times for {len(names)} recipes: give a different one "
            f"for each, in this order: {'; '.join(names)}."
        )


def _counted(name, count):
    return name if count == 1 else f"{name}, {count} seeds"


def stems_of(groups: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns the name that the runs of each group share without their seeds; a single run's own.

    Where two groups would have one name, each has the name of its first run.
    """
    stems = [_stem(group) for group in groups]
    unique = [stems.count(stem) == 1 for stem in stems]
    return [
        stem if one else group[0] for stem, one, group in zip(stems, unique, groups, strict=True)
    ]


def _stem(group):
    if len(group) == 1:
        return group[0]
    for end in _SEED_ENDS:
        stems = {re.sub(end, "", name) for name in group}
        if len(stems) == 1 and "" not in stems:
            return stems.pop()
    return re.sub(_SEED_ENDS[0], "", group[0])


def runs_of(group: tuple[str, ...], passports: Mapping[str, dict], name: str) -> Runs | None:
    """Returns a group's figures on one text, with the scores that are kept; None without any."""
    there = [passports[run] for run in group if run in passports]
    if not there:
        return None
    losses = tuple(float(passport["figures"]["log_perplexity"]) for passport in there)
    kept = [passport["place"].read_scores(passport) for passport in there]
    statistics = tuple(item_scores.statistics(arrays) for arrays in kept if arrays is not None)
    alike = len({one.shape for one in statistics}) == 1
    whole = len(statistics) == len(there) and alike
    return Runs(name, losses, statistics if whole else ())
