"""Figures of the page: passports in words, learning curves, frequent and rare words, accuracies."""

from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, charts, html_parts, learning_curves, paired, plot_style
from zoo.lab.comparison.comparison import (
    FIGURES,
    Comparison,
    figure_cells,
    group_by_text,
    list_unjudged,
    merge_reasons,
    read_losses,
    select_groups,
)
from zoo.lab.comparison.learning_curves import Curve
from zoo.lab.comparison.seeds import runs_by_line
from zoo.lab.evaluation import item_scores, results
from zoo.lab.evaluation.figures import PairPassport, PerplexityPassport
from zoo.lab.evaluation.passport import conditions
from zoo.lab.evaluation.perplexity import bits
from zoo.lab.evaluation.results import check_comparable
from zoo.lab.table import COUNT, NATS, PERCENT, Column, Table, escape


def figures_section(comparison: Comparison) -> str:
    """Returns the section of perplexities on each text, and of figures comparable to them."""
    parts = [_model_table(comparison)] if comparison.available_results[0] else []
    passports_by_text = group_by_text(comparison)
    for text_name, passports in passports_by_text.items():
        parts.append(f"<h3>{escape(text_name)}</h3>")
        parts.append(_figure_table(passports, comparison.groups))
        lines_by_run = {run: conditions(passport) for run, passport in passports.items()}
        lines = (
            f"{line} ({', '.join(runs)})" if len(runs) < len(passports) else line
            for line, runs in runs_by_line(lines_by_run).items()
        )
        parts.append(html_parts.bullet_list(map(escape, lines)))
        parts.append(f"<p>{escape(describe_comparability(text_name, passports_by_text))}</p>")
    return "".join(parts) + html_parts.omissions(list_unjudged(comparison))


def _model_table(comparison):
    """Returns the table of judged recipes, by their first passports, and their heads' settings."""
    rows, heads = [], []
    results, _ = comparison.available_results
    for recipe, columns_by_run in select_groups(comparison.groups, results).items():
        passports = [next(iter(columns.values())) for columns in columns_by_run]
        first = passports[0]
        seeds = [passport.training.seed for passport in passports]
        steps = dict.fromkeys(f"{passport.checkpoint or 0:,}" for passport in passports)
        cells = first.head_name, first.parameters, " ".join(steps), " ".join(map(str, seeds))
        rows.append((recipe.name, *cells))
        heads.append(f"{escape(recipe.name)}: {escape(first.head)}")
    columns = [Column("recipe"), Column("head")]
    columns += [Column(header, COUNT) for header in ("parameters", "training step", "seed")]
    settings = html_parts.collapsible("Heads with their settings", html_parts.bullet_list(heads))
    return Table(columns, rows).html("The models that were judged") + settings


def _figure_table(passports, recipes):
    """Returns the table of the figures on a text, a row for each recipe: means over its seeds."""
    columns = [Column("recipe"), *FIGURES, Column("bits", NATS), Column("tokens", COUNT)]
    rows = []
    for recipe, losses in read_losses(recipes, passports).items():
        cells = figure_cells(recipe, losses)
        rows.append([recipe.name, *cells, bits(losses.loss), losses.passports[0].tokens])
    return Table(columns, rows).html("Figures per token; of several seeds, means")


def describe_comparability(
    name: str, passports_by_text: dict[str, dict[str, PerplexityPassport]]
) -> str:
    """Describes the conditions for comparing with figures on a text, and why other texts of its
    split do not meet them."""
    first_name, first = next(iter(passports_by_text[name].items()))
    digest, words = first.data.sha256[:8], first.lexicon.words[:8]
    lines = [
        f"Comparable with figures on the same words of text (hash {digest}), over the same "
        f"vocabulary (hash {words}), that count the same {first.tokens:,} tokens."
    ]
    if len(passports_by_text[name]) > 1:
        lines.insert(0, "These runs are comparable with each other.")
    for text_name, passports in passports_by_text.items():
        other_name, passport = next(iter(passports.items()))
        if text_name == name or passport.split != first.split:
            continue
        if passport.data.sha256 != first.data.sha256:
            lines.append(f"! {other_name} was judged on another text of this name.")
        else:
            try:
                check_comparable(first, passport, (first_name, other_name))
            except UserError as error:
                lines.append(f"! {error}")
    return " ".join(lines)


# ------------ learning curves: loss of training and validation against the step, by recipe


def curves_section(comparison: Comparison) -> str:
    """Returns the section of learning curves, all recipes in one chart."""
    fields = learning_curves.FIELDS["step"]
    validations, missing = learning_curves.read_available(comparison.paths, fields)
    omissions = html_parts.omissions(merge_reasons(comparison.groups, missing))
    recipes = select_groups(comparison.groups, validations)
    curves = (Curve.from_validations(*recipe) for recipe in recipes.items())
    lines = [line for curve in curves for line in chart_lines(curve)]
    description = "Learning curves; the table has the best validations."
    chart = charts.curve_chart(lines, "training step", "nats per token", description)
    if not chart:
        return omissions
    caption = (
        "Solid with marks: log-perplexity of the validation text. Dashed: the training loss, the "
        "mean over the steps since the validation before; it may count other tokens, and may be "
        "sampled, so compare its course rather than its height. Of several seeds lines are means, "
        "and shades reach from the least to the greatest."
    )
    table = learning_curves.best_table(recipes).html("Best validations; of several seeds, means")
    return charts.figure(charts.legend(recipes) + chart, caption) + table + omissions


def chart_lines(curve: Curve) -> list[charts.Line]:
    """Returns the line of validation and the line of training, means over seeds."""
    lines = []
    for seeds, dash in ((curve.validation, False), (curve.training, True)):
        x, y, low, high = learning_curves.mean_curve(seeds)
        area = [*zip(x, low, high, strict=True)] if len(seeds) > 1 and not dash else []
        lines.append(charts.Line(curve.recipe.colour_number, [*zip(x, y, strict=True)], dash, area))
    return lines


# ------------- perplexity by how often the word occurred in training: often, rarely, never


def bands_section(comparison: Comparison) -> str:
    """Returns the section of log-perplexity by frequency band, a chart for each text."""
    parts: list[str] = []
    without_scores: dict[str, str] = {}
    reason = "without the kept scores of words: python -m zoo evaluate keeps them."
    for text, by_run in group_by_text(comparison).items():
        bars = {}
        for recipe, passports in select_groups(comparison.groups, by_run).items():
            bars[recipe] = bar_plots.band_bars([*map(bar_plots.read_bands, passports)])
            if len(passports) == 1 and item_scores.read(passports[0]) is None:
                without_scores[f"{recipe.name} (intervals)"] = reason
        parts.append(_draw_bands(text, bars))
    reasons = [*without_scores.items(), *list_unjudged(comparison)]
    return "".join(parts) + html_parts.omissions(reasons)


def _draw_bands(name, bars):
    """Returns the chart and the table of a text's frequency bands, from {recipe: {band: Bar}}."""
    bands = sorted(plot_style.group_names(bars), key=bar_plots.band_sort_key)
    names = {band: bar_plots.band_label(band) for band in bands}
    caption = (
        "In brackets: tokens. Line: 95 % interval by bootstrap over sentences; of several seeds, "
        "the least and the greatest. Further left is better."
    )
    table = bar_plots.bar_table(bars, "occurrences in training", "nats", "tokens", NATS, names)
    return _draw_bars(name, bars, names, "nats per token", caption, table)


def _draw_bars(title, bars, names, x_name, caption, table, *axis):
    """Returns a title, a chart of {recipe: {group: Bar}} and its table as HTML; `names` of the
    groups; `axis` as `charts.interval_chart` takes it."""
    rows = []
    for group, name in names.items():
        row = {recipe: by_group[group] for recipe, by_group in bars.items() if group in by_group}
        counts = {bar.items for bar in row.values()}
        rows.append((f"{name} ({counts.pop():,.0f})" if len(counts) == 1 else name, row))
    description = f"{title}: {x_name}; the table has the numbers."
    chart = charts.interval_chart(rows, x_name, description, *axis)
    return (
        f"<h3>{escape(title)}</h3>"
        + charts.figure(charts.legend(bars) + chart, caption)
        + table.html(f"{title}: {x_name}")
    )


# --------------- agreement, minimal pairs and answers, as far as the runs have been judged


def judgements_section(comparison: Comparison) -> str:
    """Returns the section of accuracies by kind of pair, a chart for each set of pairs."""
    parts: list[str] = []
    judged: set[str] = set()
    name_of = {path: name for name, path in comparison.paths.items()}
    for questions, by_path in results.read_answers(name_of).items():
        by_run = {name_of[path]: passport for path, passport in by_path.items()}
        judged |= by_run.keys()
        parts.append(_draw_accuracies(str(questions), by_run, comparison.groups))
    missing = {
        name: f"not judged: python -m zoo evaluate {path} makes such results, with --agreement "
        "(treebanks) or --minimal-pairs FILE."
        for name, path in comparison.paths.items()
        if name not in judged
    }
    translates = comparison.is_translator
    models = [recipe for recipe in comparison.groups if not translates(recipe.runs[0])]
    return "".join(parts) + html_parts.omissions(merge_reasons(models, missing))


def _draw_accuracies(split, passports, recipes):
    """Returns the chart, the table and the tests of {run: passport} on one text."""
    judged = [recipe for recipe in recipes if recipe.select(passports)]
    counts_by_run = {
        name: bar_plots.passport_counts(passport) for name, passport in passports.items()
    }
    bars = bar_plots.accuracy_bars(counts_by_run, judged)
    kinds = dict.fromkeys(kind for by_kind in counts_by_run.values() for kind in by_kind)
    names = {kind: kind for kind in kinds if any(kind in by_kind for by_kind in bars.values())}
    passport = next(iter(passports.values()))
    chance = 50 if isinstance(passport, PairPassport) else None
    lines = [f"Counted: {passport.counts}."]
    for name, passport in passports.items():
        if isinstance(passport, PairPassport) and passport.figures.skipped:
            lines.append(f"{name}: {passport.figures.skipped:,} skipped for want of a word.")
    first_seeds = dict(next(iter(recipe.select(passports).items())) for recipe in judged)
    lines += map(str.strip, paired.answer_lines(split, first_seeds)[1:])  # without title
    dotted = " Dotted: chance." if chance else ""
    caption = (
        f"In brackets: pairs. Line: 95 % interval for as many pairs.{dotted} Of several seeds, the "
        "mean; the table has the least and the greatest."
    )
    table = bar_plots.bar_table(bars, "kind", "right, %", "pairs", PERCENT, names)
    chart = _draw_bars(split, bars, names, "right, percent", caption, table, (0, 100), chance)
    return chart + html_parts.bullet_list(map(escape, lines))
