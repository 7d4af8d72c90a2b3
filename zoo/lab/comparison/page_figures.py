"""Figures of the page: passports in words, learning curves, frequent and rare words, accuracies."""

import math

from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, charts, html_parts, learning_curves, paired, plot_style
from zoo.lab.comparison.comparison import (
    Comparison,
    group_by_text,
    list_unjudged,
    make_row,
    merge_reasons,
    read_losses,
)
from zoo.lab.comparison.html_parts import escape, number
from zoo.lab.comparison.learning_curves import BestValidations, Curve
from zoo.lab.comparison.seeds import runs_by_line
from zoo.lab.evaluation import results
from zoo.lab.evaluation.passport import conditions
from zoo.lab.evaluation.perplexity import bits, perplexity_of
from zoo.lab.evaluation.results import check_comparable


def figures_section(runs: Comparison) -> str:
    """Describes the perplexities of recipes, a column a part, and how they compare."""
    parts = [_model_table(runs)] if runs.available_results[0] else []
    groups = group_by_text(runs)
    for group, of_runs in groups.items():
        parts.append(f"<h3>{escape(group)}</h3>")
        parts.append(_figure_table(of_runs, runs.groups))
        told = {run: conditions(passport) for run, passport in of_runs.items()}
        lines = (
            line + f" ({', '.join(of_line)})" * (len(of_line) < len(of_runs))
            for line, of_line in runs_by_line(told).items()
        )
        parts.append(html_parts.bullet_list(map(escape, lines)))
        parts.append(f"<p>{escape(describe_comparability(group, groups))}</p>")
    parts.append(html_parts.omissions(list_unjudged(runs)))
    return "".join(parts)


def _model_table(runs):
    rows, heads = [], []
    for recipe in runs.groups:
        judged = [
            next(iter(one.values())) for one in recipe.select(runs.available_results[0]).values()
        ]
        if not judged:
            continue
        passport = judged[0]
        of_seeds = [(one.get("training") or {}).get("seed", "–") for one in judged]
        steps = dict.fromkeys(f"{one['checkpoint'] or 0:,}" for one in judged)
        rows.append(
            (
                escape(recipe.name),
                escape(passport["head"].partition("(")[0]),
                f"{passport['parameters']:,}",
                escape(" ".join(steps)),
                escape(" ".join(map(str, of_seeds))),
            )
        )
        heads.append(f"{escape(recipe.name)}: {escape(passport['head'])}")
    header = ("recipe", "head", "parameters", "training step", "seed")
    whole = html_parts.collapsible("Heads with their settings", html_parts.bullet_list(heads))
    return html_parts.table(header, rows, "The models that were judged", words=2) + whole


def _figure_table(of_runs, recipes):
    """Returns the table of the figures on a text, a row for each recipe: means over its seeds."""
    rows = []
    several = False
    for recipe in recipes:
        runs = read_losses(recipe, of_runs)
        if runs is None:
            continue
        row, ends = make_row(runs, [*recipe.select(of_runs).values()]), runs.interval
        loss = number(row.log_perplexity, 4)
        several |= row.seeds > 1
        rows.append(
            [
                escape(recipe.name),
                html_parts.perplexity(row.perplexity) + " !" * row.text_seen,
                loss if math.isnan(row.low) else f"{loss} {html_parts.interval(ends, 4)}",
                html_parts.interval(runs.loss_range, 4) if row.seeds > 1 else "–",
                number(bits(row.log_perplexity), 4),
                f"{row.tokens:,}",
            ]
        )
    interval = ", 95 % interval" if any("[" in row[2] for row in rows) else ""
    header = ["recipe", "perplexity", f"nats per token{interval}", "seeds", "bits", "tokens"]
    if not several:
        header, *rows = ([*row[:3], *row[4:]] for row in (header, *rows))
    return html_parts.table(header, rows, "Figures" + "; of several seeds, means" * several)


def describe_comparability(name: str, groups: dict[str, dict[str, dict]]) -> str:
    """Describes which figures may be put beside the figures of a group."""
    first_name, first = next(iter(groups[name].items()))
    digest, words = first["data"]["sha256"][:8], first["lexicon"]["words"][:8]
    lines = [
        f"Comparable with figures on the same words of text (hash {digest}), over the same "
        f"vocabulary (hash {words}), that count the same {first['tokens']:,} tokens."
    ]
    if len(groups[name]) > 1:
        lines.insert(0, "These runs are comparable with each other.")
    for other, of_runs in groups.items():
        other_name, passport = next(iter(of_runs.items()))
        if other == name or passport["split"] != first["split"]:
            continue
        if passport["data"]["sha256"] != first["data"]["sha256"]:
            lines.append(f"! {other_name} was judged on another text of this name.")
        else:
            try:
                check_comparable(first, passport, (first_name, other_name))
            except UserError as error:
                lines.append(f"! {error}")
    return " ".join(lines)


# ------------ learning curves: loss of training and validation against the step, by recipe


def curves_section(runs: Comparison) -> str:
    """Draws the learning curves of recipes in one chart."""
    drawn, shown, best = [], [], []
    lines, missing = learning_curves.read_available(runs.paths, learning_curves.FIELDS["step"])
    for recipe in runs.groups:
        if of_seeds := [*recipe.select(lines).values()]:
            drawn += chart_lines(Curve.from_validations(recipe, of_seeds))
            shown.append(recipe)
            best.append((recipe.name, _describe_best(of_seeds)))
    left_out = html_parts.omissions(merge_reasons(runs.groups, missing))
    chart = charts.curve_chart(
        drawn,
        "training step",
        "nats per token",
        f"Learning curves. {' '.join(f'{name}: {told}' for name, told in best)}",
        least=0,
    )
    if not chart:
        return left_out
    caption = (
        "Solid with marks: log-perplexity of the validation text. Dashed: the training loss, the "
        "mean over the steps since the validation before; it may count other tokens, and may be "
        "sampled, so compare its course rather than its height. Of several seeds lines are means, "
        "and shades reach from the least to the greatest."
    )
    last = html_parts.bullet_list(f"<strong>{escape(name)}</strong>: {told}" for name, told in best)
    return charts.figure(charts.legend(shown) + chart, caption) + last + left_out


def chart_lines(curve: Curve) -> list[charts.Line]:
    """Returns the line of validation and the line of training, means over seeds."""
    lines = []
    for seeds, dashed in ((curve.validation, False), (curve.training, True)):
        x, mean, least, greatest = learning_curves.mean_curve(seeds)
        several = len(seeds) > 1 and not dashed
        shade = [*zip(x, least, greatest, strict=True)] if several else []
        points = [*zip(x, mean, strict=True)]
        lines.append(charts.Line(curve.recipe.number, points, dashed, shade))
    return lines


def _describe_best(of_seeds):
    best = BestValidations.from_validations(of_seeds)
    told = f"best validation {best.loss:.4f} nats per token"
    if len(of_seeds) == 1:
        (lines,) = of_seeds
        return (
            f"{told} at step {best.steps[0]:,} of {lines[-1]['step']:,}; number of validations: "
            f"{len(lines):,}."
        )
    steps = ", ".join(f"{step:,}" for step in best.steps)
    return f"{told}, mean of {min(best.losses):.4f} to {max(best.losses):.4f}, at steps {steps}."


# ------------- perplexity by how often the word occurred in training: often, rarely, never

_UNKNOWN = {"unknown": "<unk>: unknown words", "unseen": "never in training"}


def bands_section(runs: Comparison) -> str:
    """Draws log-perplexity by bands, a chart and a table for each group of comparable results."""
    parts: list[str] = []
    without: list[str] = []
    for group, of_runs in group_by_text(runs).items():
        bars = {}
        for recipe in runs.groups:
            passports = [*recipe.select(of_runs).values()]
            if passports:
                bars[recipe] = bar_plots.band_bars([bar_plots.read_bands(one) for one in passports])
                if len(passports) == 1 and passports[0]["place"].read_scores(passports[0]) is None:
                    without.append(recipe.name)
        parts.append(_draw_bands(group, bars))
    why = "without the kept scores of words: python -m zoo evaluate keeps them."
    parts.append(
        html_parts.omissions((f"{name} (intervals)", why) for name in dict.fromkeys(without))
    )
    parts.append(html_parts.omissions(list_unjudged(runs)))
    return "".join(parts)


def _draw_bands(name, bars):
    groups = sorted(plot_style.group_names(bars), key=bar_plots.band_sort_key)
    rows, counts, cells = _chart_and_table(
        bars, {group: band_label(group) for group in groups}, _band_cell
    )
    drawn = charts.interval_chart(
        rows,
        "nats per token",
        f"Log-perplexity of {name} by how often the word occurred in training; the table has the "
        "numbers.",
    )
    caption = (
        "In brackets: tokens. Line: 95 % interval by bootstrap over sentences; of several seeds, "
        "the least and the greatest. Further left is better."
    )
    columns = (f"{recipe.name}: perplexity" for recipe in bars)
    table = [(first, count, *others) for count, (first, *others) in zip(counts, cells, strict=True)]
    return (
        f"<h3>{escape(name)}</h3>"
        + charts.figure(charts.legend(bars) + drawn, caption)
        + html_parts.table(
            ("occurrences in training", "tokens", *columns),
            table,
            f"{name}: perplexity and its interval",
        )
    )


def _chart_and_table(bars, names, cell):
    """Returns the rows of a chart, the counts that recipes share ("–" if none), and cells of a
    table."""
    rows, counts, cells = [], [], []
    for group, name in names.items():
        found = {recipe: of[group] for recipe, of in bars.items() if group in of}
        items = {bar.items for bar in found.values()}
        counts.append(f"{items.pop():,.0f}" if len(items) == 1 else "–")
        rows.append((name if counts[-1] == "–" else f"{name} ({counts[-1]})", found))
        of_recipes = (cell(found[recipe]) if recipe in found else "–" for recipe in bars)
        cells.append((escape(name), *of_recipes))
    return rows, counts, cells


def _band_cell(bar):
    low, high = map(perplexity_of, bar.interval)
    middle = html_parts.perplexity(perplexity_of(bar.height))
    if math.isnan(low):
        return middle
    return f"{middle} [{html_parts.perplexity(low)}, {html_parts.perplexity(high)}]"


def band_label(band: str) -> str:
    if band in _UNKNOWN:
        return _UNKNOWN[band]
    least, _, most = band.rstrip("+").partition("-")
    return f"{int(least):,} to {int(most):,} times" if most else f"{int(least):,} times or more"


# --------------- agreement, minimal pairs and answers, as far as the runs have been judged


def judgements_section(runs: Comparison) -> str:
    """Draws the accuracies of recipes by kind of pair, with counts and intervals."""
    parts: list[str] = []
    judged: set[str] = set()
    name_of = {path: name for name, path in runs.paths.items()}
    for questions, of_paths in results.read_answers(name_of).items():
        of_runs = {name_of[path]: value for path, value in of_paths.items()}
        judged |= of_runs.keys()
        parts.append(_draw_accuracies(str(questions), of_runs, runs.groups))
    missing = {
        name: f"not judged: python -m zoo evaluate {path} makes such results, with --agreement "
        "(treebanks) or --minimal-pairs FILE."
        for name, path in runs.paths.items()
        if name not in judged
    }
    others = [recipe for recipe in runs.groups if not runs.is_translator(recipe.runs[0])]
    return "".join(parts) + html_parts.omissions(merge_reasons(others, missing))


def figures_by_case(figures: dict) -> dict[str, dict]:
    """Returns {kind of pair: its figures} of a passport, "all" last."""
    cases = figures.get("cases") or {}
    found = {name: one for name, one in cases.items() if isinstance(one, dict)}  # with counts
    for name, groups in (figures.get("groups") or {}).items():
        found |= {f"{name}: {value}": of_group for value, of_group in groups.items()}
    found.pop("all", None)
    count = figures.get("pairs", figures.get("answers"))
    return {**found, "all": {**figures, "pairs": count}}


def _draw_accuracies(split, of_runs, recipes):
    there = [recipe for recipe in recipes if recipe.select(of_runs)]
    found = {
        name: figures_by_case({**passport["figures"], "pairs": passport["tokens"]})
        for name, (passport, _) in of_runs.items()
    }
    bars = bar_plots.accuracy_bars(found, there)
    kinds = dict.fromkeys(kind for of_run in found.values() for kind in of_run)
    names = {kind: kind for kind in kinds if any(kind in of for of in bars.values())}
    rows, _, cells = _chart_and_table(bars, names, _accuracy_cell)
    passport = next(iter(of_runs.values()))[0]
    pairs = passport["kind"] == "minimal pairs"
    about = f"Accuracy on {split} by kind, in percent; the table has the numbers."
    drawn = charts.interval_chart(rows, "right, percent", about, (0, 100), 50 if pairs else None)
    chance = " Dotted: chance." if pairs else ""
    skipped = {
        name: int(passport["figures"].get("skipped") or 0)
        for name, (passport, _) in of_runs.items()
    }
    lines = [f"Counted: {passport['counts']}."]
    lines += [
        f"{name}: {count:,} skipped for want of a word." for name, count in skipped.items() if count
    ]
    of_first = dict(next(iter(recipe.select(of_runs).items())) for recipe in there)
    lines += [line.strip() for line in paired.answer_lines(split, of_first)[1:]]  # without title
    caption = (
        f"In brackets: pairs. Line: 95 % interval for as many pairs.{chance} Of several seeds, the "
        "mean; the table has the least and the greatest."
    )
    return (
        f"<h3>{escape(split)}</h3>"
        + charts.figure(charts.legend(there) + drawn, caption)
        + html_parts.table(
            ("kind", *(recipe.name for recipe in there)),
            cells,
            f"{split}: right, 95 % interval, counts",
        )
        + html_parts.bullet_list(map(escape, lines))
    )


def _accuracy_cell(bar):
    """Formats an accuracy with its interval, its counts and the range of its seeds."""
    low, high = bar.interval
    told = f"{bar.height:.1f} % [{low:.1f}, {high:.1f}], "
    if not bar.seeds:
        return told + f"{bar.height * bar.items / 100:,.0f} of {bar.items:,.0f}"
    return told + f"of {bar.items:,.0f}; seeds {min(bar.seeds):.1f} to {max(bar.seeds):.1f}"
