"""Agreement, minimal pairs and answers, as far as the runs have been judged."""

from zoo.evaluation import results, significance
from zoo.evaluation.reports import paired
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.subjects import Subject


def section(subjects: list[Subject]) -> str:
    """Draws the accuracies of runs by kind of pair, with counts and intervals.

    Args:
      subjects: the runs.
    """
    answers = results.read_answers([one.path for one in subjects])
    parts: list[str] = []
    judged: set[str] = set()
    for (split, _), of_paths in answers.items():
        by_path = {one.path: one for one in subjects}
        of_runs = {by_path[path].name: value for path, value in of_paths.items()}
        judged |= of_runs.keys()
        numbers = {one.name: one.number for one in subjects}
        parts.append(_questions(split, of_runs, numbers, [one.name for one in subjects]))
    for one in subjects:
        if one.name not in judged:
            why = (
                f"not judged: python -m zoo agreement {one.path} (treebanks) and python -m zoo "
                f"evaluate {one.path} --minimal-pairs FILE make such results."
            )
            parts.append(elements.missing(why, one.name))
    return "".join(parts)


def cases(figures: dict) -> dict[str, dict]:
    """Returns {kind of pair: its figures} of a passport, "all" last.

    Args:
      figures: of the passport.
    """
    cases = figures.get("cases") or {}
    found = {name: one for name, one in cases.items() if isinstance(one, dict)}  # with counts
    for name, groups in (figures.get("groups") or {}).items():
        found |= {f"{name}: {value}": of_group for value, of_group in groups.items()}
    found.pop("all", None)
    count = figures.get("pairs", figures.get("answers"))
    return {**found, "all": {**figures, "pairs": count}}


def _questions(split, of_runs, numbers, names):
    of_cases = {
        name: cases({**passport["figures"], "pairs": passport["tokens"]})
        for name, (passport, _) in of_runs.items()
    }
    chart, table = [], []
    for case in dict.fromkeys(case for found in of_cases.values() for case in found):
        estimates, cells = [], [text(case)]
        for name, found in of_cases.items():
            right, count = (int(found.get(case, {}).get(key) or 0) for key in ("right", "pairs"))
            cells.append(
                f"{elements.share(right, count)}, {right:,} of {count:,}" * bool(count) or "–"
            )
            if count:
                ends = significance.binomial_interval(right, count)
                span = 100 * ends[0], 100 * ends[1]
                estimates.append(charts.Estimate(numbers[name], 100 * right / count, span))
        if estimates:
            chart.append((_counted(case, of_cases), estimates))
            table.append(cells)
    passport = next(iter(of_runs.values()))[0]
    pairs = passport["kind"] == "minimal pairs"
    about = f"Accuracy on {split} by kind, in percent; the table has the numbers."
    drawn = charts.intervals(chart, "right, percent", about, (0, 100), 50 if pairs else None)
    chance = " Dotted: chance." if pairs else ""
    only = {numbers[name] for name in of_runs}
    skipped = {
        name: int(passport["figures"].get("skipped") or 0)
        for name, (passport, _) in of_runs.items()
    }
    lines = [f"Counted: {passport['counts']}."]
    lines += [
        f"{name}: {count:,} skipped for want of a word." for name, count in skipped.items() if count
    ]
    lines += [line.strip() for line in paired.answer_lines(split, of_runs)[1:]]  # without its title
    return (
        f"<h3>{text(split)}</h3>"
        + charts.figure(charts.legend(names, only) + drawn, f"Line: 95 % interval.{chance}")
        + elements.table(("kind", *of_runs), table, f"{split}: right, 95 % interval, counts")
        + elements.items(map(text, lines))
    )


def _counted(case, of_cases):
    """Returns the name of a kind with its number of pairs, if all runs have as many."""
    counts = {int(found[case].get("pairs") or 0) for found in of_cases.values() if case in found}
    return f"{case} ({counts.pop():,})" if len(counts) == 1 else case
