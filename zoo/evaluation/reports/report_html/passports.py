"""Passports in plain words: the text that was judged, the words that count, comparability."""

import math

from zoo.errors import UserError
from zoo.evaluation import leakage, passport_text
from zoo.evaluation.perplexity import Impossible, perplexity_of
from zoo.evaluation.reports import seeds
from zoo.evaluation.reports.report_html import elements
from zoo.evaluation.reports.report_html.elements import number, text
from zoo.evaluation.reports.report_html.subjects import (
    Recipe,
    comparable_groups,
    subjects_of,
    unjudged,
)
from zoo.evaluation.results import check_comparable

_STATES = {
    "sentences": "Each sentence is read from an empty state: the model knows nothing of the "
    "sentences before it.",
    "carried": "The state is carried from sentence to sentence: the model knows the text before "
    "each word, as far as it remembers.",
}


def section(recipes: list[Recipe]) -> str:
    """Describes the perplexities of recipes, a column a part, and how they compare."""
    judged = any(subject.columns for subject in subjects_of(recipes))
    parts = [_models(recipes)] if judged else []
    groups = comparable_groups(recipes)
    for group, of_runs in groups.items():
        parts.append(f"<h3>{text(group)}</h3>")
        parts.append(_figures(of_runs, recipes))
        told: dict = {}
        for name, passport in of_runs.items():
            told.setdefault(tuple(sentences(passport)), []).append(name)
        for lines, of_lines in told.items():
            who = f"<p>{text(', '.join(of_lines))}:</p>" if len(told) > 1 else ""
            parts.append(who + elements.items(map(text, lines)))
        parts.append(elements.paragraph(text(comparability(group, groups))))
    parts.append(elements.all_missing(unjudged(recipes)))
    return "".join(parts)


def _models(recipes):
    rows, heads = [], []
    for recipe in recipes:
        judged = [next(iter(one.columns.values())) for one in recipe.subjects if one.columns]
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
    whole = elements.more("Heads with their settings", elements.items(heads))
    return elements.table(header, rows, "The models that were judged", words=2) + whole


def _figures(of_runs, recipes):
    """Returns the table of the figures on a text, a row for each recipe: means over its seeds."""
    rows = []
    several = False
    for recipe in recipes:
        here = recipe.of(of_runs)
        if not here:
            continue
        passports = [*here.values()]
        runs = seeds.runs_of(tuple(here), here, recipe.name)
        assert runs is not None
        marked = " !" if any(map(leakage.reason, passports)) else ""
        # Of a record whose scores are not kept.
        ends = passports[0]["figures"].get("interval") or (math.nan, math.nan)
        if runs.statistics:
            ends = runs.interval
        elif len(passports) > 1:
            ends = math.nan, math.nan
        loss = runs.loss
        perplexity = float(passports[0]["figures"]["perplexity"])
        spread = "–"
        if len(passports) > 1:
            several = True
            perplexity = perplexity_of(loss)
            spread = elements.interval((min(runs.losses), max(runs.losses)), 4)
        cells = [
            text(recipe.name),
            elements.perplexity(perplexity) + marked,
            number(loss, 4) + ("" if math.isnan(ends[0]) else f" {elements.interval(ends, 4)}"),
            spread,
            number(loss / math.log(2), 4),
            f"{passports[0]['tokens']:,}",
        ]
        rows.append(cells)
    interval = ", 95 % interval" if any("[" in row[2] for row in rows) else ""
    header = ["recipe", "perplexity", f"nats per token{interval}", "seeds", "bits", "tokens"]
    if not several:
        header, *rows = ([*row[:3], *row[4:]] for row in (header, *rows))
    return elements.table(header, rows, "Figures" + "; of several seeds, means" * several)


def sentences(passport: dict) -> list[str]:
    """Describes the conditions of a perplexity in plain words, a sentence a line."""
    data = passport["data"]
    units = ("line", "character") if _of_characters(passport) else ("sentence", "word")
    lines = [
        f"The text: {data['path']}{_size(data, *units)}.",
        f"Counted: {passport['tokens']:,} tokens: {passport['counts']}.",
        f"Vocabulary: the probabilities of a position sum to one over {_over(passport)}.",
        unknown_words(passport),
        _STATES[passport["policies"]["state"]],
        f"Seen before, {'; '.join(leakage.lines(passport))}.",
        f"Priors that saw this text: {', '.join(passport['priors_saw_this_text']) or 'none'}.",
    ]
    if source := passport.get("source"):
        lines.insert(1, f"Its sources: {source['path']}{_size(source)}.")
    if ways := passport.get("learns_from_text"):
        lines.append(
            f"! The model learns from the text that it is judged on, by {' and '.join(ways)}: do "
            "not compare the figure with those of models that do not."
        )
    if note := passport_text.unfinished(passport):
        lines.append(f"! It was {note}.")
    if why := leakage.reason(passport):
        lines.append(f"! Not a figure of unseen text: {why}.")
    if constraint := passport.get("constraint"):
        lines.append(
            f"Only sentences that the grammar {constraint['grammar']} allows are possible."
        )
    if "impossible" in passport["figures"]:
        lines.append(f"{Impossible(**passport['figures']['impossible']).sentence}.")
    return lines


def _of_characters(passport):
    """Whether the tokens of a text are its characters."""
    return passport["counts"].startswith("characters")


def _over(passport):
    """Describes the set over which probabilities sum to one."""
    over = passport["normalised_over"]
    return over.replace(" words ", " characters ") if _of_characters(passport) else over


def _size(data, sentence="sentence", word="word"):
    """Describes the size of a text, as far as it is recorded."""
    if "sentences" not in data or "words" not in data:
        return ""
    return f", {data['sentences']:,} {sentence}s of {data['words']:,} {word}s"


def unknown_words(passport: dict) -> str:
    """Describes the words, or characters, of a text that are outside the vocabulary."""
    tokens, written = (passport.get(name) for name in ("out_of_vocabulary", "unknown_tokens"))
    word = "character" if _of_characters(passport) else "word"
    if tokens is None:
        return f"Unknown {word}s: not recorded."
    if tokens:
        types = f"{passport['out_of_vocabulary_types']:,} of {passport['types']:,} different ones"
        return (
            f"Unknown {word}s: {tokens:,} of its {word}s "
            f"({passport['out_of_vocabulary_rate']:.2%}), {types}, are outside the vocabulary."
        )
    if written:
        return f"Unknown {word}s: {written:,} of its {word}s are written <unk> in the text itself."
    return f"Unknown {word}s: none, all {word}s of the text are in the vocabulary."


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
