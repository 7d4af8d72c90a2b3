"""Passports in plain words: the text that was judged, the words that count, comparability."""

import dataclasses
import math
from typing import NamedTuple

from zoo.comparison import (
    bar_plots,
    charts,
    curve_plots,
    html_parts,
    learning_curves,
    paired,
    plot_style,
)
from zoo.comparison.bar_plots import kept_bands
from zoo.comparison.comparison import (
    Comparison,
    figures_of,
    in_texts,
    perplexity,
    runs_of_lines,
    unjudged,
)
from zoo.comparison.html_parts import number, text
from zoo.decoding import BeamSearch
from zoo.errors import UserError
from zoo.evaluation import leakage, results, significance, translation_quality
from zoo.evaluation.passport import conditions
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.results import OF_TRANSLATIONS, check_comparable, quantity
from zoo.evaluation.run import Run


def section(runs: Comparison) -> str:
    """Describes the perplexities of recipes, a column a part, and how they compare."""
    parts = [_models(runs)] if runs.judged[0] else []
    groups = in_texts(runs)
    for group, of_runs in groups.items():
        parts.append(f"<h3>{text(group)}</h3>")
        parts.append(_figures(of_runs, runs.groups))
        told = {run: conditions(passport) for run, passport in of_runs.items()}
        lines = (
            line + f" ({', '.join(of_line)})" * (len(of_line) < len(of_runs))
            for line, of_line in runs_of_lines(told).items()
        )
        parts.append(html_parts.items(map(text, lines)))
        parts.append(html_parts.paragraph(text(comparability(group, groups))))
    parts.append(html_parts.all_missing(unjudged(runs)))
    return "".join(parts)


def _models(runs):
    rows, heads = [], []
    for recipe in runs.groups:
        judged = [next(iter(one.values())) for one in recipe.of(runs.judged[0]).values()]
        if not judged:
            continue
        passport = judged[0]
        of_seeds = [(one.get("training") or {}).get("seed", "–") for one in judged]
        steps = dict.fromkeys(f"{one['checkpoint'] or 0:,}" for one in judged)
        rows.append(
            (
                text(recipe.name),
                text(passport["head"].partition("(")[0]),
                f"{passport['parameters']:,}",
                text(" ".join(steps)),
                text(" ".join(map(str, of_seeds))),
            )
        )
        heads.append(f"{text(recipe.name)}: {text(passport['head'])}")
    header = ("recipe", "head", "parameters", "training step", "seed")
    whole = html_parts.more("Heads with their settings", html_parts.items(heads))
    return html_parts.table(header, rows, "The models that were judged", words=2) + whole


def _figures(of_runs, recipes):
    """Returns the table of the figures on a text, a row for each recipe: means over its seeds."""
    rows = []
    several = False
    for recipe in recipes:
        runs = figures_of(recipe, of_runs)
        if runs is None:
            continue
        passports = [*recipe.of(of_runs).values()]
        marked = " !" if any(map(leakage.reason, passports)) else ""
        ends, loss = runs.interval, runs.loss
        spread = html_parts.interval(runs.span, 4) if len(passports) > 1 else "–"
        several |= len(passports) > 1
        cells = [
            text(recipe.name),
            html_parts.perplexity(perplexity(runs, passports)) + marked,
            number(loss, 4) + ("" if math.isnan(ends[0]) else f" {html_parts.interval(ends, 4)}"),
            spread,
            number(loss / math.log(2), 4),
            f"{passports[0]['tokens']:,}",
        ]
        rows.append(cells)
    interval = ", 95 % interval" if any("[" in row[2] for row in rows) else ""
    header = ["recipe", "perplexity", f"nats per token{interval}", "seeds", "bits", "tokens"]
    if not several:
        header, *rows = ([*row[:3], *row[4:]] for row in (header, *rows))
    return html_parts.table(header, rows, "Figures" + "; of several seeds, means" * several)


def comparability(name: str, groups: dict[str, dict[str, dict]]) -> str:
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
    drawn, left_out, last = [], [], []
    for recipe in runs.groups:
        of_seeds, missing = [], []
        for name, path in recipe.of(runs.paths).items():
            try:
                of_seeds.append(learning_curves.of_run(path, learning_curves.FIELDS["step"]))
            except UserError as error:
                missing.append((name, str(error)))
        left_out += missing if of_seeds else [(recipe.name, missing[0][1])]
        if of_seeds:
            drawn += curves_of(recipe.number, of_seeds)
            last.append(f"<strong>{html_parts.text(recipe.name)}</strong>: {_best(of_seeds)}")
    chart = charts.curves(
        drawn,
        "training step",
        "nats per token",
        f"Learning curves. {' '.join(map(_plain, last))}",
        least=0,
    )
    if not chart:
        return html_parts.all_missing(left_out)
    shown = {curve.run for curve in drawn}
    content = charts.legend(one for one in runs.groups if one.number in shown) + chart
    caption = (
        "Solid with marks: log-perplexity of the validation text. Dashed: the training loss, the "
        "mean over the steps since the validation before; it may count other tokens, and may be "
        "sampled, so compare its course rather than its height. Of several seeds lines are means, "
        "and shades reach from the least to the greatest."
    )
    return (
        charts.figure(content, caption) + html_parts.items(last) + html_parts.all_missing(left_out)
    )


def curves_of(number: int, of_seeds: list[list[dict]]) -> list[charts.Curve]:
    """Returns the curve of validation and the curve of training, means over seeds."""
    validation, training = (
        [learning_curves.points(lines, field=field) for lines in of_seeds]
        for field in (learning_curves.LOSS, learning_curves.TRAINING)
    )
    return [_curve_of(number, validation), _curve_of(number, training, dashed=True)]


def _curve_of(number, seeds, dashed=False):
    x, mean, least, greatest = curve_plots.mean_curve(seeds)
    shade = [*zip(x, least, greatest, strict=True)] if len(seeds) > 1 and not dashed else []
    return charts.Curve(number, [*zip(x, mean, strict=True)], dashed, shade)


def _best(of_seeds):
    """Describes the best validations of the seeds of a recipe."""
    best = [min(lines, key=lambda line: float(line[learning_curves.LOSS])) for lines in of_seeds]
    losses = [float(line[learning_curves.LOSS]) for line in best]
    mean = f"best validation {math.fsum(losses) / len(losses):.4f} nats per token"
    if len(best) == 1:
        (lines,) = of_seeds
        return (
            f"{mean} at step {best[0]['step']:,} of {lines[-1]['step']:,}; number of validations: "
            f"{len(lines):,}."
        )
    steps = ", ".join(f"{line['step']:,}" for line in best)
    return f"{mean}, mean of {min(losses):.4f} to {max(losses):.4f}, at steps {steps}."


def _plain(line):
    return line.replace("<strong>", "").replace("</strong>", "")


# ------------- perplexity by how often the word occurred in training: often, rarely, never

_UNKNOWN = {"unknown": "<unk>: unknown words", "unseen": "never in training"}


def bands(runs: Comparison) -> str:
    """Draws log-perplexity by bands, a chart and a table for each group of comparable results."""
    parts: list[str] = []
    without: list[str] = []
    for group, of_runs in in_texts(runs).items():
        rows_of = {}
        for recipe in runs.groups:
            passports = [*recipe.of(of_runs).values()]
            if passports:
                rows_of[recipe] = bar_plots.band_bars([kept_bands(one) for one in passports])
                if len(passports) == 1 and passports[0]["place"].read_scores(passports[0]) is None:
                    without.append(recipe.name)
        parts.append(_bands_of(group, rows_of))
    why = "without the kept scores of words: python -m zoo evaluate keeps them."
    parts.append(
        html_parts.all_missing((f"{name} (intervals)", why) for name in dict.fromkeys(without))
    )
    parts.append(html_parts.all_missing(unjudged(runs)))
    return "".join(parts)


def _bands_of(name, rows_of):
    chart, table = [], []
    for band in sorted(plot_style.groups(rows_of), key=bar_plots.least_count):
        found = {recipe: bars[band] for recipe, bars in rows_of.items() if band in bars}
        estimates = [
            charts.Estimate(recipe.number, bar.height, bar.interval)
            for recipe, bar in found.items()
        ]
        tokens = [bar.items for bar in found.values()]
        shared = f"{tokens[0]:,.0f}" if len({*tokens}) == 1 else "–"
        chart.append((f"{label(band)} ({shared})" if shared != "–" else label(band), estimates))
        cells = [text(label(band)), shared]
        for recipe in rows_of:
            cells.append(_band_cell(found[recipe]) if recipe in found else "–")
        table.append(cells)
    drawn = charts.intervals(
        chart,
        "nats per token",
        f"Log-perplexity of {name} by how often the word occurred in training; the table has the "
        "numbers.",
    )
    header = (
        "occurrences in training",
        "tokens",
        *(f"{recipe.name}: perplexity" for recipe in rows_of),
    )
    caption = (
        "In brackets: tokens. Line: 95 % interval by bootstrap over sentences; of several seeds, "
        "the least and the greatest. Further left is better."
    )
    legend = charts.legend(rows_of)
    return (
        f"<h3>{text(name)}</h3>"
        + charts.figure(legend + drawn, caption)
        + html_parts.table(header, table, f"{name}: perplexity and its interval")
    )


def _band_cell(bar):
    low, high = map(perplexity_of, bar.interval)
    middle = html_parts.perplexity(perplexity_of(bar.height))
    if math.isnan(low):
        return middle
    return f"{middle} [{html_parts.perplexity(low)}, {html_parts.perplexity(high)}]"


def label(band: str) -> str:
    """Names a band in plain words."""
    if band in _UNKNOWN:
        return _UNKNOWN[band]
    least, _, most = band.rstrip("+").partition("-")
    return f"{int(least):,} to {int(most):,} times" if most else f"{int(least):,} times or more"


# --------------- agreement, minimal pairs and answers, as far as the runs have been judged


def judgements(runs: Comparison) -> str:
    """Draws the accuracies of recipes by kind of pair, with counts and intervals."""
    parts: list[str] = []
    judged: set[str] = set()
    name_of = {path: name for name, path in runs.paths.items()}
    for questions, of_paths in results.read_answers(name_of).items():
        of_runs = {name_of[path]: value for path, value in of_paths.items()}
        judged |= of_runs.keys()
        parts.append(_questions(str(questions), of_runs, runs.groups))
    for recipe in runs.groups:
        if runs.translates(recipe.runs[0]):  # which no pairs judge
            continue
        missing = [name for name in recipe.runs if name not in judged]
        none = len(missing) == len(recipe.runs)
        for name in missing[:1] if none else missing:
            path = runs.paths[name]
            why = (
                f"not judged: python -m zoo evaluate {path} makes such results, with "
                "--agreement (treebanks) or --minimal-pairs FILE."
            )
            parts.append(html_parts.missing(why, recipe.name if none else name))
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
            cells.append(_accuracy_cell(right, count, shares))
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
    legend = charts.legend(there)
    caption = (
        f"In brackets: pairs. Line: 95 % interval for as many pairs.{chance} Of several seeds, the "
        "mean; the table has the least and the greatest."
    )
    return (
        f"<h3>{text(split)}</h3>"
        + charts.figure(legend + drawn, caption)
        + html_parts.table(
            ("kind", *(recipe.name for recipe in there)),
            table,
            f"{split}: right, 95 % interval, counts",
        )
        + html_parts.items(map(text, lines))
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


def _accuracy_cell(right, count, shares):
    """Formats an accuracy with its interval, its counts and the range of its seeds."""
    if not count:
        return "–"
    if len(shares) == 1:
        return f"{html_parts.share(right, count)}, {right:,.0f} of {count:,.0f}"
    spread = f"seeds {min(shares):.1f} to {max(shares):.1f}"
    return f"{html_parts.share(right, count)}, of {count:,.0f}; {spread}"


# ----------------------- BLEU and chrF of translations, as far as the runs have translated

# Resamples of an interval.
SAMPLES = 1000


class Scored(NamedTuple):
    """Scores of a run's translations."""

    search: str
    passport: dict
    intervals: dict[str, tuple[float, float]]


def translations(runs: Comparison) -> str:
    """Returns a table for each text that was translated, a row for each recipe and search."""
    texts: dict[str, dict[tuple[str, str], list[Scored]]] = {}
    for recipe in runs.groups:
        for name, path in recipe.of(runs.paths).items():
            run = runs.loaded[0].get(name)
            for place, passport in results.read_translations(path):
                scored = Scored(search_of(passport), passport, _intervals(run, place, passport))
                rows = texts.setdefault(repr(quantity(passport, OF_TRANSLATIONS)), {})
                rows.setdefault((recipe.name, scored.search), []).append(scored)
    if not texts:
        return html_parts.missing("no run has translated: python -m zoo translate DIR --bleu does.")
    return "".join(_translations_table(rows) for rows in texts.values())


def _translations_table(rows):
    first = next(iter(rows.values()))[0].passport
    metrics = [*first["figures"]]
    cells = [
        (text(name), text(search), *(cell(metric, scored) for metric in metrics))
        for (name, search), scored in rows.items()
    ]
    split = first["split"].removeprefix("translation-")
    caption = (
        f"{split}: {first['tokens']:,} sentences of {first['data']['path']}, {first['counts']}. In "
        "brackets: 95 % interval by sentences; of several seeds, mean, least and greatest"
    )
    signatures = [f"{metric}: {first['figures'][metric]['signature']}" for metric in metrics]
    return (
        f"<h3>{text(split)}</h3>"
        + html_parts.table(("recipe", "search", *metrics), cells, caption, words=2)
        + html_parts.more("Signatures", html_parts.items(map(text, signatures)))
    )


def cell(metric: str, scored: list[Scored]) -> str:
    """Formats a recipe's score: the mean of its seeds with their range, or with an interval."""
    scores = [
        float(one.passport["figures"][metric]["score"])
        for one in scored
        if metric in one.passport["figures"]
    ]
    if not scores:
        return "–"
    ends = scored[0].intervals.get(metric, (math.nan, math.nan))
    if len(scores) > 1:
        ends = min(scores), max(scores)
    shown = number(math.fsum(scores) / len(scores), 2)
    return shown if math.isnan(ends[0]) else f"{shown} {html_parts.interval(ends, 2)}"


def search_of(passport: dict) -> str:
    """Describes the search that found translations: "beam 12, length_normalisation 1"."""
    how = passport.get("decoding") or {}
    search = how.get("search") or {}
    usual = {field.name: field.default for field in dataclasses.fields(BeamSearch)}
    words = [f"beam {search.get('beam', '–')}"]
    words += [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in search.items()
        if name != "beam" and value != usual.get(name)
    ]
    runs = how.get("runs") or ()
    words += [f"{len(runs)} runs together"] * (len(runs) > 1)
    words += ["with a language model"] * bool(how.get("language_model"))
    words += ["unknown words replaced"] * bool(how.get("unknowns"))
    return ", ".join(words)


def _intervals(run: Run | None, place, passport):
    """Computes the intervals of a run's scores; {} without translations and references."""
    if run is None or place.prefix:
        return {}
    split = passport["split"].removeprefix("translation-")
    experiment = run.experiment
    try:
        file = place.scores.parent / place.name
        result = translation_quality.read(file, split)
        corpus = experiment.vocabulary.read(experiment.data.as_written(), split)
        (row,) = translation_quality.compare([""], [result], corpus.sentences, SAMPLES)
    except UserError:
        return {}
    return {metric: one["interval"] for metric, one in row.items() if metric != "run"}
