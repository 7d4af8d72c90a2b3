"""Pictures of the accuracies on agreement pairs that several runs keep."""

from collections.abc import Mapping, Sequence

from zoo import strict_json
from zoo.comparison import bar_plots, plot_style
from zoo.comparison.comparison import Comparison, Group
from zoo.errors import UserError
from zoo.evaluation import agreement
from zoo.evaluation.results import Questions, read_answers
from zoo.runs import output_files

_CASE = {"right": int, "pairs": int}
_DISTANCES = {*agreement.DISTANCES, "all"}


def plot_kept(
    workdirs: Sequence[str], file: str, labels: Sequence[str] = (), log=output_files.show
):
    """Prints and draws the accuracies that `zoo evaluate --agreement` kept."""
    plot_style.check_file(file)
    runs = Comparison.of(workdirs, labels)
    of_paths: dict[str, dict[Questions, dict]] = {path: {} for path in runs.paths.values()}
    for questions, of_runs in read_answers(runs.paths.values()).items():
        if questions.options:  # the same questions again
            continue
        for path, (record, _) in of_runs.items():
            cases = record["figures"].get("cases")
            if isinstance(cases, dict) and all(map(_has_counts, cases.values())):
                of_paths[str(path)][questions] = cases
    first = next(iter(of_paths))
    for path, found in of_paths.items():
        if not found:
            raise UserError(
                f"{path} has no accuracy on pairs: python -m zoo evaluate {path} --agreement."
            )
        if found.keys() != of_paths[first].keys():
            raise UserError(
                f"{first} and {path} were judged on different pairs: judge both alike by python "
                "-m zoo evaluate DIR --agreement."
            )
    counts = {name: pooled([*of_paths[path].values()]) for name, path in runs.paths.items()}
    bars = {
        group: {case: bar_plots.accuracy_bar(of_seeds) for case, of_seeds in cases.items()}
        for group, cases in draw(counts, runs.groups, file).items()
    }
    for line in bar_plots.table(bars, "accuracy in %", "pairs", "95 %", 1):
        log(line)
    log(file)


def _has_counts(case):
    try:
        strict_json.check(case, _CASE)
    except ValueError:
        return False
    return True


def draw(
    counts: Mapping[str, Mapping[str, tuple[int, int]]], groups: Sequence[Group], file: str
) -> dict[Group, dict[str, list[tuple[int, int]]]]:
    """Draws the accuracies of recipes by phenomenon and case; returns {recipe: {case: counts}}."""
    every = list(dict.fromkeys(case for of_run in counts.values() for case in of_run))
    of_recipes = {
        group: {
            case: there
            for case in every
            if (there := [counts[run][case] for run in group.runs if case in counts[run]])
        }
        for group in groups
    }
    by_distance = all(case.rpartition(", ")[2] in _DISTANCES for case in every)
    bar_plots.accuracy(of_recipes, file, "distance in words" if by_distance else "")
    return of_recipes


def pooled(of_splits: list[dict[str, dict]]) -> dict[str, tuple[int, int]]:
    """Sums (right, pairs) of each case over several splits, for the cases that have pairs."""
    counts = {}
    for name in dict.fromkeys(name for cases in of_splits for name in cases):
        right, pairs = (sum(cases[name][key] for cases in of_splits) for key in ("right", "pairs"))
        if pairs:
            counts[name] = right, pairs
    return counts
