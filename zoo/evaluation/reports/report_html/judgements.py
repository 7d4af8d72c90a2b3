"""Agreement, minimal pairs and answers, as far as the runs have been judged."""

from zoo.evaluation import answers, significance
from zoo.evaluation.reports import paired
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.subjects import Recipe, numbered, subjects_of, translate


def section(recipes: list[Recipe]) -> str:
    """Draws the accuracies of recipes by kind of pair, with counts and intervals."""
    subjects = subjects_of(recipes)
    parts: list[str] = []
    judged: set[str] = set()
    for questions, of_paths in answers.read_answers([one.path for one in subjects]).items():
        by_path = {one.path: one for one in subjects}
        of_runs = {by_path[path].name: value for path, value in of_paths.items()}
        judged |= of_runs.keys()
        parts.append(_questions(str(questions), of_runs, recipes))
    for recipe in recipes:
        if translate(recipe.subjects):  # which no pairs judge
            continue
        missing = [one for one in recipe.subjects if one.name not in judged]
        none = len(missing) == len(recipe.subjects)
        for one in missing[:1] if none else missing:
            why = (
                f"not judged: python -m zoo evaluate {one.path} makes such results, with "
                "--agreement (treebanks) or --minimal-pairs FILE."
            )
            parts.append(elements.missing(why, recipe.name if none else one.name))
    return "".join(parts)


def cases(figures: dict) -> dict[str, dict]:
    """Returns {kind of pair: its figures} of a passport, "all" last."""
    cases = figures.get("cases") or {}
    found = {name: one for name, one in cases.items() if isinstance(one, dict)}  # with counts
    for name, groups in (figures.get("groups") or {}).items():
        found |= {f"{name}: {value}": of_group for value, of_group in groups.items()}
    found.pop("all", None)
    count = figures.get("pairs", figures.get("answers"))
    return {**found, "all": {**figures, "pairs": count}}


def _questions(split, of_runs, recipes):
    there = [recipe for recipe in recipes if recipe.of(of_runs)]
    of_cases = {
        recipe: [
            cases({**passport["figures"], "pairs": passport["tokens"]})
            for passport, _ in recipe.of(of_runs).values()
        ]
        for recipe in there
    }
    chart, table = [], []
    every = dict.fromkeys(case for found in of_cases.values() for one in found for case in one)
    for case in every:
        estimates, cells, counts = [], [text(case)], []
        for recipe, found in of_cases.items():
            right, count, shares = mean_of(case, found)
            cells.append(_cell(right, count, shares))
            if count:
                ends = significance.binomial_interval(right, count)
                span = 100 * ends[0], 100 * ends[1]
                estimates.append(charts.Estimate(recipe.number, 100 * (right / count), span))
                counts.append(count)
        if estimates:
            name = f"{case} ({counts[0]:,.0f})" if len({*counts}) == 1 else case
            chart.append((name, estimates))
            table.append(cells)
    passport = next(iter(of_runs.values()))[0]
    pairs = passport["kind"] == "minimal pairs"
    about = f"Accuracy on {split} by kind, in percent; the table has the numbers."
    drawn = charts.intervals(chart, "right, percent", about, (0, 100), 50 if pairs else None)
    chance = " Dotted: chance." if pairs else ""
    skipped = {
        name: int(passport["figures"].get("skipped") or 0)
        for name, (passport, _) in of_runs.items()
    }
    lines = [f"Counted: {passport['counts']}."]
    lines += [
        f"{name}: {count:,} skipped for want of a word." for name, count in skipped.items() if count
    ]
    first = {next(iter(recipe.of(of_runs))): None for recipe in there}
    of_first = {name: of_runs[name] for name in first}
    lines += [
        line.strip() for line in paired.answer_lines(split, of_first)[1:]
    ]  # without its title
    legend = charts.legend(numbered(recipes), {one.number for one in there})
    caption = (
        f"In brackets: pairs. Line: 95 % interval for as many pairs.{chance} Of several seeds, the "
        "mean; the table has the least and the greatest."
    )
    return (
        f"<h3>{text(split)}</h3>"
        + charts.figure(legend + drawn, caption)
        + elements.table(
            ("kind", *(recipe.name for recipe in there)),
            table,
            f"{split}: right, 95 % interval, counts",
        )
        + elements.items(map(text, lines))
    )


def mean_of(case: str, of_seeds: list[dict]) -> tuple[float, float, list[float]]:
    """Returns (right answers, questions, means over seeds; the share of each seed, percent)."""
    counts = [
        (int(found[case].get("right") or 0), int(found[case].get("pairs") or 0))
        for found in of_seeds
        if case in found
    ]
    counts = [one for one in counts if one[1]]
    if not counts:
        return 0, 0, []
    right, pairs = (sum(numbers) / len(counts) for numbers in zip(*counts, strict=True))
    return right, pairs, [100 * (one / of) for one, of in counts]


def _cell(right, count, shares):
    """Formats an accuracy with its interval, its counts and the range of its seeds."""
    if not count:
        return "–"
    if len(shares) == 1:
        return f"{elements.share(right, count)}, {right:,.0f} of {count:,.0f}"
    spread = f"seeds {min(shares):.1f} to {max(shares):.1f}"
    return f"{elements.share(right, count)}, of {count:,.0f}; {spread}"
