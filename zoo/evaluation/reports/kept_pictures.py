"""Pictures of figures that runs keep among their results: by word frequency, and of agreement."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zoo import strict_json
from zoo.errors import UserError
from zoo.evaluation import agreement as judgement
from zoo.evaluation import item_scores, leakage, records
from zoo.evaluation.answers import Questions, read_answers
from zoo.evaluation.reports import bar_plots, plot_style, seeds
from zoo.evaluation.reports.tables import aligned
from zoo.evaluation.results import check_comparable, columns_of, names_of, read_results
from zoo.runs import output_files

_CASE = {"right": int, "pairs": int}


def bands(
    workdirs: Sequence[str],
    file: str,
    split: str | None = None,
    labels: Sequence[str] = (),
    log=output_files.show,
):
    """Prints and draws log-perplexity by the words' training counts."""
    paths = _named(workdirs, file)
    columns = columns_of({name: read_results([path])[path] for name, path in paths.items()})
    of_all = [
        column
        for column, passports in columns.items()
        if len(passports) == len(paths) and split in (None, column.split)
    ]
    if not of_all:
        raise UserError(
            f"the runs were not all evaluated on {split or 'one text'}: python -m zoo evaluate DIR "
            "--split NAME makes such results."
        )
    # Tests of the recipe come before texts of --data, whose names have a colon, and validation.
    column = min(of_all, key=lambda one: (leakage.is_validation(one.split), ":" in one.split))
    passports = columns[column]
    first = next(iter(passports))
    for name, passport in passports.items():
        check_comparable(passports[first], passport, (first, name))
        if why := leakage.reason(passport):
            raise UserError(f"{name} cannot be drawn on {column.split}: {why}; leave it out.")
    names = seeds.names_of(seeds.grouped_by_recipe(paths), labels)
    rows = {name: [kept_bands(passports[run]) for run in group] for group, name in names.items()}
    title = f"{names_of(columns)[column]} ({passports[first]['tokens']:,} tokens)"
    bar_plots.bands(rows, file, title=title)
    log(title)
    bars = {name: bar_plots.band_bars(of_seeds) for name, of_seeds in rows.items()}
    several = [len(group) > 1 for group in names]
    interval = " or ".join(["95 %"] * (not all(several)) + ["of the seeds"] * any(several))
    for line in _table(bars, "occurrences", "tokens", interval, 4):
        log(line)
    log(file)


def kept_bands(passport):
    """Returns the bands of a passport, with intervals where the scores of words are kept."""
    scores = passport["place"].read_scores(passport)
    return item_scores.with_intervals(passport["figures"].get("bands") or [], scores)


def agreement(
    workdirs: Sequence[str], file: str, labels: Sequence[str] = (), log=output_files.show
):
    """Prints and draws the accuracies that `zoo evaluate --agreement` kept."""
    paths = _named(workdirs, file)
    of_paths: dict[str, dict[Questions, dict]] = {path: {} for path in paths.values()}
    for questions, of_runs in read_answers(paths.values()).items():
        if questions.options:  # the same questions again
            continue
        for path, (passport, _) in of_runs.items():
            cases = passport["figures"].get("cases")
            if isinstance(cases, dict) and all(map(_has_counts, cases.values())):
                of_paths[str(path)][questions] = cases
    first = next(iter(paths.values()))
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
    counts = {name: judgement.pooled([*of_paths[path].values()]) for name, path in paths.items()}
    names = seeds.names_of(seeds.grouped_by_recipe(paths), labels)
    judgement.draw(counts, names, file)
    bars = {
        name: {
            case: bar_plots.accuracy_bar([counts[run][case] for run in group])
            for case in counts[group[0]]
        }
        for group, name in names.items()
    }
    for line in _table(bars, "accuracy in %", "pairs", "95 %", 1):
        log(line)
    log(file)


def _has_counts(case):
    try:
        strict_json.check(case, _CASE)
    except ValueError:
        return False
    return True


def _named(workdirs, file) -> dict[str, str]:
    """Checks the file; returns {short name: folder or name in a record}."""
    from zoo.evaluation.run import short_names

    plot_style.check_file(file)
    workdirs = records.expanded(workdirs)
    return dict(zip(short_names(workdirs), workdirs, strict=True))


def _table(
    bars: Mapping[str, Mapping[str, bar_plots.Bar]],
    title: str,
    unit: str,
    interval: str,
    digits: int,
) -> Iterator[str]:
    """Yields the numbers of bars, a line each."""
    rows: list[list[Any]] = [
        [
            name,
            group,
            f"{bar.height:.{digits}f}",
            "[{:.{d}f}, {:.{d}f}]".format(*bar.interval, d=digits),
            f"{bar.items:,.0f}",
        ]
        for name, of_recipe in bars.items()
        for group, bar in of_recipe.items()
    ]
    yield from aligned(["recipe", title, "", interval, unit], rows)
