"""Runs of one recipe that differ in their seed alone, put together."""

from collections.abc import Iterable, Mapping

from zoo.evaluation import item_scores
from zoo.evaluation.reports.paired import Runs


def grouped(names: Iterable[str], results: Mapping[str, Mapping]) -> list[tuple[str, ...]]:
    """Runs in groups, in the order of their first ones.

    Runs are of one group if their passports have the recipe but for its seed, and other seeds; runs
    whose passports do not say stand alone.

    Args:
      names: of runs.
      results: {run: {column: passport}}.
    """
    groups: list[dict] = []
    for name in names:
        recipe, seed = _recipe_of(results[name])
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
    """(the digest of a run's recipe but for its seed, None if it is not known; the seed)."""
    training = next(iter(of_run.values())).get("training") or {}
    return training.get("recipe_but_seed") or None, training.get("seed")


def name_of(group: tuple[str, ...]) -> str:
    """What to call a group: its run, or the first of its runs and how many seeds there are."""
    return group[0] if len(group) == 1 else f"{group[0]} ({len(group)} seeds)"


def runs_of(group: tuple[str, ...], passports: Mapping[str, dict]) -> Runs | None:
    """The figures of a group on one text, with the scores that are kept; None without any.

    Args:
      group: names of runs.
      passports: of the runs that have a figure on the text.
    """
    there = [passports[name] for name in group if name in passports]
    if not there:
        return None
    losses = tuple(float(passport["figures"]["log_perplexity"]) for passport in there)
    kept = [passport["place"].read_scores(passport) for passport in there]
    statistics = tuple(item_scores.statistics(arrays) for arrays in kept if arrays is not None)
    alike = len({one.shape for one in statistics}) == 1
    whole = len(statistics) == len(there) and alike
    return Runs(name_of(group), losses, statistics if whole else ())
