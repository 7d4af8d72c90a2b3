"""Two recipes side by side: the words of a text where their log-probabilities differ most."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.alignment import PositionalAll
from zoo.decoding import BeamSearch
from zoo.errors import UserError
from zoo.lab.comparison import html_parts, paired
from zoo.lab.comparison.comparison import Comparison, group_by_text, list_unjudged, read_losses
from zoo.lab.comparison.html_parts import escape, number
from zoo.lab.evaluation import best_words, translators
from zoo.lab.evaluation.best_words import ScoredWords
from zoo.lab.evaluation.run import Run, first_test
from zoo.lab.evaluation.translators import Restoring, Translator
from zoo.lexicon import Lexicon
from zoo.sources import moses, pairs

# Words that are shown in each direction, and words of context before each.
MOST_WORDS, CONTEXT = 12, 8


class WordDifference(NamedTuple):
    """A word of a text under two runs."""

    sentence: int
    before: str
    word: str
    one: float  # log p of the first run, nats
    other: float  # log p of the second run, nats


def differences_section(runs: Comparison) -> str:
    """Compares the first recipe with each other one on each text that both were judged on."""
    parts: list[str] = []
    left_out: list[tuple[str, str]] = []
    groups = group_by_text(runs)
    compared: set[str] = set()
    for place, of_runs in enumerate(groups.values()):
        first, *others = [recipe for recipe in runs.groups if recipe.select(of_runs)]
        if others:
            compared |= of_runs.keys()
        for other in others:
            name = f"{first.name} and {other.name}"
            try:
                body = _compare_pair(runs, first, other, of_runs, folded=place > 0)
                split = next(iter(of_runs.values()))["split"]
                parts.append(f"<h3>{escape(name)}, {escape(split)}</h3>{body}")
            except UserError as error:
                left_out.append((name, str(error)))
    why = "no other recipe has a figure to compare with: the first section tells what differs."
    judged = [recipe for recipe in runs.groups if recipe.select(runs.available_results[0])]
    left_out += [(recipe.name, why) for recipe in judged if not compared & {*recipe.runs}]
    parts.append(html_parts.omissions([*left_out, *list_unjudged(runs)]))
    return "".join(parts)


def _compare_pair(runs, one, other, of_runs, folded):
    figures = [of_recipe for recipe in (one, other) if (of_recipe := read_losses(recipe, of_runs))]
    lines = html_parts.bullet_list(escape(line.strip()) for line in paired.loss_lines(figures))
    if not all(of_recipe.statistics for of_recipe in figures):
        why = "without the kept scores of both there is neither an interval nor a test by sentences"
        again = "python -m zoo evaluate keeps them."
        if all(len(of_recipe.losses) > 1 for of_recipe in figures):
            return lines + html_parts.omission(f"{why}: {again}", "Word by word")
        raise UserError(f"{why}: {again}")
    first, second = (next(iter(recipe.select(of_runs))) for recipe in (one, other))
    try:
        kept = [_read_words(runs, name, of_runs[name]) for name in (first, second)]
    except UserError as error:
        return lines + html_parts.omission(str(error), "Word by word")
    found = largest_differences(kept[0], kept[1], runs.available_runs[0][first].lexicon)
    words = _tables(first, second, found)
    return (
        lines
        + _describe_shares(first, second, kept, of_runs[first]["policies"].get("batch"))
        + (html_parts.collapsible("Word by word", words) if folded else words)
    )


def _read_words(runs, name, passport):
    loaded, missing = runs.available_runs
    if name in missing:
        raise UserError(missing[name])
    return best_words.read(loaded[name], passport, passport["place"].read_scores(passport))


def largest_differences(
    one: ScoredWords, other: ScoredWords, lexicon: Lexicon
) -> tuple[list[WordDifference], list[WordDifference]]:
    """Returns the words in favour of the first run and of the second, those that differ most
    first."""
    with np.errstate(invalid="ignore"):  # of two words of probability 0
        gain = one.log_prob.astype(np.float64) - other.log_prob.astype(np.float64)
    order = np.argsort(-np.nan_to_num(gain, nan=0.0), kind="stable")
    first, second = (
        _first_distinct(one, other, lexicon, numbers) for numbers in (order, order[::-1])
    )
    return (
        [row for row in first if row.one > row.other],
        [row for row in second if row.one < row.other],
    )


def _first_distinct(one, other, lexicon, order):
    """Returns the first `MOST` words of an order; a word after the same words is taken once."""
    found: dict = {}
    for index in order.tolist():
        position = int(one.positions[index])
        sentence, place = one.text.position(position)
        begin = max(position - place + 1, position - CONTEXT)
        before = one.text.read_as(lexicon, begin, position)
        word = one.text.read_as(lexicon, position, position + 1)
        log_probs = float(one.log_prob[index]), float(other.log_prob[index])
        found.setdefault((before, word), WordDifference(sentence, before, word, *log_probs))
        if len(found) == MOST_WORDS:
            break
    return [*found.values()]


def _tables(one, other, found):
    tables = []
    for better, worse, rows in ((one, other, found[0]), (other, one, found[1])):
        cells = [
            (
                f'<span class="before">{escape(row.before)}</span> '
                f"<strong>{escape(row.word)}</strong>",
                html_parts.probability(row.one),
                html_parts.probability(row.other),
                "+" + number(abs(row.one - row.other), 2),
                f"{row.sentence:,}",
            )
            for row in rows
        ]
        header = ("words before, and the word", f"p, {one}", f"p, {other}", "nats", "sentence")
        caption = f"Words that {better} predicts better than {worse} by most; each context once"
        tables += [html_parts.table(header, cells, caption)] * bool(rows)
    return "".join(tables)


def _describe_shares(one, other, kept, rows):
    """Returns sentences on how many words each run predicts better, and on the text's rows."""
    first, second = (scores.log_prob for scores in kept)
    better, worse = int((first > second).sum()), int((first < second).sum())
    count = max(1, len(first))
    told = (
        f"Of {count:,} counted words {one} predicts {better:,} better ({better / count:.1%}), and "
        f"{other} {worse:,} ({worse / count:.1%})."
    )
    if rows:
        told += f" As in a perplexity, the state begins empty in each of {rows} rows of the text."
    return f"<p>{escape(told)}</p>"


# ----------- attention of translations: for each word, the source words that it attends to

# Pairs that are shown, and the beam of their translations.
PAIRS, BEAM = 4, 5
_CELL, _LETTER = 20, 8


class AttendedTranslation(NamedTuple):
    source: Sequence[str]
    translation: Sequence[str]
    reference: Sequence[str]
    weights: np.ndarray  # [T, S]


def attention_section(runs: Comparison, translators: Sequence[str], split: str | None) -> str:
    """Draws the attention of translators that have any, and tells which cannot be read."""
    parts, left_out = [], []
    loaded, missing = runs.available_runs
    for name in translators:
        if name in missing:
            left_out.append((name, missing[name]))
        elif loaded[name].experiment.model.attention is not None:  # type: ignore[attr-defined]
            try:
                parts.append(
                    f"<h3>{escape(name)}</h3>{_draw_translations(name, loaded[name], split)}"
                )
            except UserError as error:
                left_out.append((name, str(error)))
    return "".join(parts) + html_parts.omissions(left_out)


def _draw_translations(name, run, split):
    parts = []
    for place, one in enumerate(translate_with_attention(run, split or first_test(run.experiment))):
        about = f"Attention of the translation of sentence {place + 1} by {name}"
        strongest = [
            f"{escape(word)} ← {escape(one.source[best])} ({number(float(row[best]), 2)})"
            for word, row, best in zip(
                one.translation, one.weights, one.weights.argmax(-1).tolist(), strict=True
            )
        ]
        parts.append(
            f"<figure>{draw_attention(one, about)}<figcaption>{escape(' '.join(one.source))}<br>→ "
            f"{escape(' '.join(one.translation))}<br>reference: {escape(' '.join(one.reference))}"
            f"</figcaption></figure>"
            + html_parts.collapsible("Strongest links", html_parts.bullet_list(strongest))
        )
    return "".join(parts)


def translate_with_attention(run: Run, split: str) -> list[AttendedTranslation]:
    """Translates the first sentences of a split, as `zoo translate` writes them."""
    translator = Translator((run,))
    restoring = _make_restorer(translator)
    corpus = translator.pairs(split)
    sources = run.experiment.source_corpus(corpus).sentences[:PAIRS]
    found = []
    every = restoring.translate(sources, BeamSearch(BEAM), PAIRS)
    for best, reference in zip(every, corpus.sentences, strict=False):
        for one in best[:1]:
            weights = translators.attention_weights(translator, one.hypothesis, one.read)
            of_text = one.source, one.words, reference
            source, words, reference = ([*map(moses.unescaped, line)] for line in of_text)
            found.append(AttendedTranslation(source, words, reference, weights))
    return found


def _make_restorer(translator):
    """Returns the replacement of unknown words: by the run's dictionary, if `zoo text` wrote one,
    and of marks that do not take part in attention."""
    file = translator.runs[0].path / translators.DICTIONARY
    dictionary = pairs.read_dictionary(str(file)) if file.exists() else {}
    strategy = translator.runs[0].experiment.data.unknowns
    kept = isinstance(strategy, PositionalAll) or not (strategy or dictionary)
    return Restoring(translator, dictionary, "keep" if kept else None)


def draw_attention(one: AttendedTranslation, about: str) -> str:
    """Draws weights as squares whose areas are in proportion to them."""
    left = _LETTER * max(map(len, one.translation), default=1) + 14
    top = _LETTER * max(map(len, one.source), default=1) + 14
    width, height = left + _CELL * len(one.source) + 4, top + _CELL * len(one.translation) + 4
    parts = []
    for column, word in enumerate(one.source):
        x = left + _CELL * (column + 0.5) + 4
        parts.append(
            f'<text class="source" transform="translate({x:g} {top - 6}) rotate(-90)">'
            f"{escape(word)}</text>"
        )
    for row, word in enumerate(one.translation):
        y = top + _CELL * (row + 0.5)
        parts.append(f'<text class="target" x="{left - 6}" y="{y + 4:g}">{escape(word)}</text>')
        for column, other in enumerate(one.source):
            weight = float(one.weights[row, column])
            size = (_CELL - 2) * weight**0.5
            x = left + _CELL * (column + 0.5)
            parts.append(
                f"<g><title>{escape(word)} ← {escape(other)}: {number(weight, 2)}</title>"
                f'<rect class="cell" x="{x - _CELL / 2:g}" y="{y - _CELL / 2:g}" width="{_CELL}" '
                f'height="{_CELL}"/><rect class="weight" x="{x - size / 2:.1f}" '
                f'y="{y - size / 2:.1f}" width="{size:.1f}" height="{size:.1f}"/></g>'
            )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(about)}"><svg '
        f'class="attention" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(about)}">{"".join(parts)}</svg></div>'
    )
