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


def figures_section(comparison: Comparison) -> str:
    """Describes the perplexities of recipes, a column a part, and how they compare."""
    parts = [_model_table(comparison)] if comparison.available_results[0] else []
    passports_by_text = group_by_text(comparison)
    for text_name, passports in passports_by_text.items():
        parts.append(f"<h3>{escape(text_name)}</h3>")
        parts.append(_figure_table(passports, comparison.groups))
        lines_by_run = {run: conditions(passport) for run, passport in passports.items()}
        lines = (
            line + f" ({', '.join(runs)})" * (len(runs) < len(passports))
            for line, runs in runs_by_line(lines_by_run).items()
        )
        parts.append(html_parts.bullet_list(map(escape, lines)))
        parts.append(f"<p>{escape(describe_comparability(text_name, passports_by_text))}</p>")
    parts.append(html_parts.omissions(list_unjudged(comparison)))
    return "".join(parts)


def _model_table(comparison):
    rows, heads = [], []
    for recipe in comparison.groups:
        passports = [
            next(iter(passport.values()))
            for passport in recipe.select(comparison.available_results[0]).values()
        ]
        if not passports:
            continue
        first = passports[0]
        seeds = [(passport.get("training") or {}).get("seed", "–") for passport in passports]
        steps = dict.fromkeys(f"{passport['checkpoint'] or 0:,}" for passport in passports)
        rows.append(
            (
                escape(recipe.name),
                escape(first["head"].partition("(")[0]),
                f"{first['parameters']:,}",
                escape(" ".join(steps)),
                escape(" ".join(map(str, seeds))),
            )
        )
        heads.append(f"{escape(recipe.name)}: {escape(first['head'])}")
    header = ("recipe", "head", "parameters", "training step", "seed")
    settings = html_parts.collapsible("Heads with their settings", html_parts.bullet_list(heads))
    return html_parts.table(header, rows, "The models that were judged", words=2) + settings


def _figure_table(passports, recipes):
    """Returns the table of the figures on a text, a row for each recipe: means over its seeds."""
    rows = []
    has_seeds = False
    for recipe in recipes:
        losses = read_losses(recipe, passports)
        if losses is None:
            continue
        row, ends = make_row(losses, [*recipe.select(passports).values()]), losses.interval
        loss = number(row.log_perplexity, 4)
        has_seeds |= row.seeds > 1
        rows.append(
            [
                escape(recipe.name),
                html_parts.perplexity(row.perplexity) + " !" * row.text_seen,
                loss if math.isnan(row.low) else f"{loss} {html_parts.interval(ends, 4)}",
                html_parts.interval(losses.loss_range, 4) if row.seeds > 1 else "–",
                number(bits(row.log_perplexity), 4),
                f"{row.tokens:,}",
            ]
        )
    interval = ", 95 % interval" if any("[" in row[2] for row in rows) else ""
    header = ["recipe", "perplexity", f"nats per token{interval}", "seeds", "bits", "tokens"]
    if not has_seeds:
        header, *rows = ([*row[:3], *row[4:]] for row in (header, *rows))
    return html_parts.table(header, rows, "Figures" + "; of several seeds, means" * has_seeds)


def describe_comparability(name: str, passports_by_text: dict[str, dict[str, dict]]) -> str:
    """Describes which figures may be put beside the figures of a group."""
    first_name, first = next(iter(passports_by_text[name].items()))
    digest, words = first["data"]["sha256"][:8], first["lexicon"]["words"][:8]
    lines = [
        f"Comparable with figures on the same words of text (hash {digest}), over the same "
        f"vocabulary (hash {words}), that count the same {first['tokens']:,} tokens."
    ]
    if len(passports_by_text[name]) > 1:
        lines.insert(0, "These runs are comparable with each other.")
    for text_name, passports in passports_by_text.items():
        other_name, passport = next(iter(passports.items()))
        if text_name == name or passport["split"] != first["split"]:
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


def curves_section(comparison: Comparison) -> str:
    """Draws the learning curves of recipes in one chart."""
    lines, recipes, summaries = [], [], []
    validations, missing = learning_curves.read_available(
        comparison.paths, learning_curves.FIELDS["step"]
    )
    for recipe in comparison.groups:
        if seeds := [*recipe.select(validations).values()]:
            lines += chart_lines(Curve.from_validations(recipe, seeds))
            recipes.append(recipe)
            summaries.append((recipe.name, _describe_best(seeds)))
    omissions = html_parts.omissions(merge_reasons(comparison.groups, missing))
    chart = charts.curve_chart(
        lines,
        "training step",
        "nats per token",
        f"Learning curves. {' '.join(f'{name}: {summary}' for name, summary in summaries)}",
        x_start=0,
    )
    if not chart:
        return omissions
    caption = (
        "Solid with marks: log-perplexity of the validation text. Dashed: the training loss, the "
        "mean over the steps since the validation before; it may count other tokens, and may be "
        "sampled, so compare its course rather than its height. Of several seeds lines are means, "
        "and shades reach from the least to the greatest."
    )
    best_list = html_parts.bullet_list(
        f"<strong>{escape(name)}</strong>: {summary}" for name, summary in summaries
    )
    return charts.figure(charts.legend(recipes) + chart, caption) + best_list + omissions


def chart_lines(curve: Curve) -> list[charts.Line]:
    """Returns the line of validation and the line of training, means over seeds."""
    lines = []
    for seeds, dashed in ((curve.validation, False), (curve.training, True)):
        x, mean, low, high = learning_curves.mean_curve(seeds)
        is_shaded = len(seeds) > 1 and not dashed
        shade = [*zip(x, low, high, strict=True)] if is_shaded else []
        points = [*zip(x, mean, strict=True)]
        lines.append(charts.Line(curve.recipe.number, points, dashed, shade))
    return lines


def _describe_best(seeds):
    best = BestValidations.from_validations(seeds)
    summary = f"best validation {best.loss:.4f} nats per token"
    if len(seeds) == 1:
        (validations,) = seeds
        return (
            f"{summary} at step {best.steps[0]:,} of {validations[-1]['step']:,}; number of validations: "
            f"{len(validations):,}."
        )
    steps = ", ".join(f"{step:,}" for step in best.steps)
    return f"{summary}, mean of {min(best.losses):.4f} to {max(best.losses):.4f}, at steps {steps}."


# ------------- perplexity by how often the word occurred in training: often, rarely, never

_UNKNOWN = {"unknown": "<unk>: unknown words", "unseen": "never in training"}


def bands_section(comparison: Comparison) -> str:
    """Draws log-perplexity by bands, a chart and a table for each group of comparable results."""
    parts: list[str] = []
    without_scores: list[str] = []
    for group, by_run in group_by_text(comparison).items():
        bars = {}
        for recipe in comparison.groups:
            passports = [*recipe.select(by_run).values()]
            if passports:
                bars[recipe] = bar_plots.band_bars(
                    [bar_plots.read_bands(passport) for passport in passports]
                )
                if len(passports) == 1 and passports[0]["place"].read_scores(passports[0]) is None:
                    without_scores.append(recipe.name)
        parts.append(_draw_bands(group, bars))
    reason = "without the kept scores of words: python -m zoo evaluate keeps them."
    parts.append(
        html_parts.omissions(
            (f"{name} (intervals)", reason) for name in dict.fromkeys(without_scores)
        )
    )
    parts.append(html_parts.omissions(list_unjudged(comparison)))
    return "".join(parts)


def _draw_bands(name, bars):
    groups = sorted(plot_style.group_names(bars), key=bar_plots.band_sort_key)
    rows, counts, cells = _chart_and_table(
        bars, {group: band_label(group) for group in groups}, _band_cell
    )
    chart = charts.interval_chart(
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
    table = [
        (group_label, count, *values)
        for count, (group_label, *values) in zip(counts, cells, strict=True)
    ]
    return (
        f"<h3>{escape(name)}</h3>"
        + charts.figure(charts.legend(bars) + chart, caption)
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
        group_bars = {
            recipe: by_group[group] for recipe, by_group in bars.items() if group in by_group
        }
        items = {bar.items for bar in group_bars.values()}
        counts.append(f"{items.pop():,.0f}" if len(items) == 1 else "–")
        rows.append((name if counts[-1] == "–" else f"{name} ({counts[-1]})", group_bars))
        recipe_cells = (
            cell(group_bars[recipe]) if recipe in group_bars else "–" for recipe in bars
        )
        cells.append((escape(name), *recipe_cells))
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
    low, _, high = band.rstrip("+").partition("-")
    return f"{int(low):,} to {int(high):,} times" if high else f"{int(low):,} times or more"


# --------------- agreement, minimal pairs and answers, as far as the runs have been judged


def judgements_section(comparison: Comparison) -> str:
    """Draws the accuracies of recipes by kind of pair, with counts and intervals."""
    parts: list[str] = []
    judged: set[str] = set()
    name_of = {path: name for name, path in comparison.paths.items()}
    for questions, by_path in results.read_answers(name_of).items():
        by_run = {name_of[path]: judgement for path, judgement in by_path.items()}
        judged |= by_run.keys()
        parts.append(_draw_accuracies(str(questions), by_run, comparison.groups))
    missing = {
        name: f"not judged: python -m zoo evaluate {path} makes such results, with --agreement "
        "(treebanks) or --minimal-pairs FILE."
        for name, path in comparison.paths.items()
        if name not in judged
    }
    language_models = [
        recipe for recipe in comparison.groups if not comparison.is_translator(recipe.runs[0])
    ]
    return "".join(parts) + html_parts.omissions(merge_reasons(language_models, missing))


def figures_by_case(figures: dict) -> dict[str, dict]:
    """Returns {kind of pair: its figures} of a passport, "all" last."""
    cases = figures.get("cases") or {}
    by_case = {
        name: counts for name, counts in cases.items() if isinstance(counts, dict)
    }  # with counts
    for name, groups in (figures.get("groups") or {}).items():
        by_case |= {f"{name}: {value}": group_figures for value, group_figures in groups.items()}
    by_case.pop("all", None)
    count = figures.get("pairs", figures.get("answers"))
    return {**by_case, "all": {**figures, "pairs": count}}


def _draw_accuracies(split, judgements, recipes):
    judged_recipes = [recipe for recipe in recipes if recipe.select(judgements)]
    figures_by_run = {
        name: figures_by_case({**passport["figures"], "pairs": passport["tokens"]})
        for name, (passport, _) in judgements.items()
    }
    bars = bar_plots.accuracy_bars(figures_by_run, judged_recipes)
    kinds = dict.fromkeys(kind for by_kind in figures_by_run.values() for kind in by_kind)
    names = {kind: kind for kind in kinds if any(kind in by_kind for by_kind in bars.values())}
    rows, _, cells = _chart_and_table(bars, names, _accuracy_cell)
    passport = next(iter(judgements.values()))[0]
    pairs = passport["kind"] == "minimal pairs"
    description = f"Accuracy on {split} by kind, in percent; the table has the numbers."
    chart = charts.interval_chart(
        rows, "right, percent", description, (0, 100), 50 if pairs else None
    )
    chance = " Dotted: chance." if pairs else ""
    skipped = {
        name: int(passport["figures"].get("skipped") or 0)
        for name, (passport, _) in judgements.items()
    }
    lines = [f"Counted: {passport['counts']}."]
    lines += [
        f"{name}: {count:,} skipped for want of a word." for name, count in skipped.items() if count
    ]
    first_judgements = dict(
        next(iter(recipe.select(judgements).items())) for recipe in judged_recipes
    )
    lines += [
        line.strip() for line in paired.answer_lines(split, first_judgements)[1:]
    ]  # without title
    caption = (
        f"In brackets: pairs. Line: 95 % interval for as many pairs.{chance} Of several seeds, the "
        "mean; the table has the least and the greatest."
    )
    return (
        f"<h3>{escape(split)}</h3>"
        + charts.figure(charts.legend(judged_recipes) + chart, caption)
        + html_parts.table(
            ("kind", *(recipe.name for recipe in judged_recipes)),
            cells,
            f"{split}: right, 95 % interval, counts",
        )
        + html_parts.bullet_list(map(escape, lines))
    )


def _accuracy_cell(bar):
    """Formats an accuracy with its interval, its counts and the range of its seeds."""
    low, high = bar.interval
    accuracy = f"{bar.height:.1f} % [{low:.1f}, {high:.1f}], "
    if not bar.seeds:
        return accuracy + f"{bar.height * bar.items / 100:,.0f} of {bar.items:,.0f}"
    return accuracy + f"of {bar.items:,.0f}; seeds {min(bar.seeds):.1f} to {max(bar.seeds):.1f}"
