"""Grouping of runs of one recipe that differ in their seed alone."""

from collections.abc import Iterable, Mapping

from zoo.evaluation import item_scores
from zoo.evaluation.reports.paired import Runs


def grouped(names: Iterable[str], results: Mapping[str, Mapping]) -> list[tuple[str, ...]]:
    """Groups runs, in the order of the groups' first runs.

    Runs are of one group if their passports have the same recipe but for the seed, and different
    seeds; a run whose passports do not record its recipe stands alone.

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
    """Returns (the digest of a run's recipe but for its seed, None if not known; the seed)."""
    training = next(iter(of_run.values())).get("training") or {}
    return training.get("recipe_but_seed") or None, training.get("seed")


def name_of(group: tuple[str, ...]) -> str:
    """Names a group: its run, or the first of its runs and the number of seeds.

    Args:
      group: names of runs.
    """
    return group[0] if len(group) == 1 else f"{group[0]} ({len(group)} seeds)"


def runs_of(group: tuple[str, ...], passports: Mapping[str, dict]) -> Runs | None:
    """Returns the figures of a group on one text, with the scores that are kept; None without any.

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
