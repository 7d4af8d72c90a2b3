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
    first: float  # log p of the first run, nats
    second: float  # log p of the second run, nats


def differences_section(comparison: Comparison) -> str:
    """Compares the first recipe with each other one on each text that both were judged on."""
    parts: list[str] = []
    reasons: list[tuple[str, str]] = []
    groups = group_by_text(comparison)
    compared: set[str] = set()
    for index, passports in enumerate(groups.values()):
        baseline, *candidates = [recipe for recipe in comparison.groups if recipe.select(passports)]
        if candidates:
            compared |= passports.keys()
        for candidate in candidates:
            name = f"{baseline.name} and {candidate.name}"
            try:
                body = _compare_pair(comparison, baseline, candidate, passports, folded=index > 0)
                split = next(iter(passports.values()))["split"]
                parts.append(f"<h3>{escape(name)}, {escape(split)}</h3>{body}")
            except UserError as error:
                reasons.append((name, str(error)))
    note = "no other recipe has a figure to compare with: the first section tells what differs."
    judged = [
        recipe for recipe in comparison.groups if recipe.select(comparison.available_results[0])
    ]
    reasons += [(recipe.name, note) for recipe in judged if not compared & {*recipe.runs}]
    parts.append(html_parts.omissions([*reasons, *list_unjudged(comparison)]))
    return "".join(parts)


def _compare_pair(comparison, baseline, candidate, passports, folded):
    losses = [
        recipe_losses
        for recipe in (baseline, candidate)
        if (recipe_losses := read_losses(recipe, passports))
    ]
    lines = html_parts.bullet_list(escape(line.strip()) for line in paired.loss_lines(losses))
    if not all(recipe_losses.statistics for recipe_losses in losses):
        reason = (
            "without the kept scores of both there is neither an interval nor a test by sentences"
        )
        remedy = "python -m zoo evaluate keeps them."
        if all(len(recipe_losses.losses) > 1 for recipe_losses in losses):
            return lines + html_parts.omission(f"{reason}: {remedy}", "Word by word")
        raise UserError(f"{reason}: {remedy}")
    first_run, second_run = (
        next(iter(recipe.select(passports))) for recipe in (baseline, candidate)
    )
    try:
        scored_words = [
            _read_words(comparison, name, passports[name]) for name in (first_run, second_run)
        ]
    except UserError as error:
        return lines + html_parts.omission(str(error), "Word by word")
    differences = largest_differences(
        scored_words[0], scored_words[1], comparison.available_runs[0][first_run].lexicon
    )
    tables = _tables(first_run, second_run, differences)
    return (
        lines
        + _describe_shares(
            first_run, second_run, scored_words, passports[first_run]["policies"].get("batch")
        )
        + (html_parts.collapsible("Word by word", tables) if folded else tables)
    )


def _read_words(comparison, name, passport):
    runs, reasons = comparison.available_runs
    if name in reasons:
        raise UserError(reasons[name])
    return best_words.read(runs[name], passport, passport["place"].read_scores(passport))


def largest_differences(
    first: ScoredWords, second: ScoredWords, lexicon: Lexicon
) -> tuple[list[WordDifference], list[WordDifference]]:
    """Returns the words in favour of the first run and of the second, those that differ most
    first."""
    with np.errstate(invalid="ignore"):  # of two words of probability 0
        gain = first.log_prob.astype(np.float64) - second.log_prob.astype(np.float64)
    order = np.argsort(-np.nan_to_num(gain, nan=0.0), kind="stable")
    first_better, second_better = (
        _first_distinct(first, second, lexicon, ranking) for ranking in (order, order[::-1])
    )
    return (
        [row for row in first_better if row.first > row.second],
        [row for row in second_better if row.first < row.second],
    )


def _first_distinct(first, second, lexicon, order):
    """Returns the first `MOST` words of an order; a word after the same words is taken once."""
    rows: dict = {}
    for index in order.tolist():
        position = int(first.positions[index])
        sentence, offset = first.text.position(position)
        begin = max(position - offset + 1, position - CONTEXT)
        before = first.text.read_as(lexicon, begin, position)
        word = first.text.read_as(lexicon, position, position + 1)
        log_probs = float(first.log_prob[index]), float(second.log_prob[index])
        rows.setdefault((before, word), WordDifference(sentence, before, word, *log_probs))
        if len(rows) == MOST_WORDS:
            break
    return [*rows.values()]


def _tables(first_run, second_run, differences):
    tables = []
    for better, worse, rows in (
        (first_run, second_run, differences[0]),
        (second_run, first_run, differences[1]),
    ):
        cells = [
            (
                f'<span class="before">{escape(row.before)}</span> '
                f"<strong>{escape(row.word)}</strong>",
                html_parts.probability(row.first),
                html_parts.probability(row.second),
                "+" + number(abs(row.first - row.second), 2),
                f"{row.sentence:,}",
            )
            for row in rows
        ]
        header = (
            "words before, and the word",
            f"p, {first_run}",
            f"p, {second_run}",
            "nats",
            "sentence",
        )
        caption = f"Words that {better} predicts better than {worse} by most; each context once"
        tables += [html_parts.table(header, cells, caption)] * bool(rows)
    return "".join(tables)


def _describe_shares(first_run, second_run, scored_words, rows):
    """Returns sentences on how many words each run predicts better, and on the text's rows."""
    first, second = (scores.log_prob for scores in scored_words)
    better, worse = int((first > second).sum()), int((first < second).sum())
    count = max(1, len(first))
    sentence = (
        f"Of {count:,} counted words {first_run} predicts {better:,} better ({better / count:.1%}), and "
        f"{second_run} {worse:,} ({worse / count:.1%})."
    )
    if rows:
        sentence += (
            f" As in a perplexity, the state begins empty in each of {rows} rows of the text."
        )
    return f"<p>{escape(sentence)}</p>"


# ----------- attention of translations: for each word, the source words that it attends to

# Pairs that are shown, and the beam of their translations.
PAIRS, BEAM = 4, 5
_CELL, _LETTER = 20, 8


class AttendedSentence(NamedTuple):
    source: Sequence[str]
    translation: Sequence[str]
    reference: Sequence[str]
    weights: np.ndarray  # [T, S]


def attention_section(comparison: Comparison, translators: Sequence[str], split: str | None) -> str:
    """Draws the attention of translators that have any, and tells which cannot be read."""
    parts, reasons = [], []
    runs, missing = comparison.available_runs
    for name in translators:
        if name in missing:
            reasons.append((name, missing[name]))
        elif runs[name].experiment.model.attention is not None:  # type: ignore[attr-defined]
            try:
                parts.append(
                    f"<h3>{escape(name)}</h3>{_draw_translations(name, runs[name], split)}"
                )
            except UserError as error:
                reasons.append((name, str(error)))
    return "".join(parts) + html_parts.omissions(reasons)


def _draw_translations(name, run, split):
    parts = []
    for index, sentence in enumerate(
        translate_with_attention(run, split or first_test(run.experiment))
    ):
        description = f"Attention of the translation of sentence {index + 1} by {name}"
        strongest = [
            f"{escape(word)} ← {escape(sentence.source[best])} ({number(float(row[best]), 2)})"
            for word, row, best in zip(
                sentence.translation,
                sentence.weights,
                sentence.weights.argmax(-1).tolist(),
                strict=True,
            )
        ]
        parts.append(
            f"<figure>{draw_attention(sentence, description)}<figcaption>{escape(' '.join(sentence.source))}<br>→ "
            f"{escape(' '.join(sentence.translation))}<br>reference: {escape(' '.join(sentence.reference))}"
            f"</figcaption></figure>"
            + html_parts.collapsible("Strongest links", html_parts.bullet_list(strongest))
        )
    return "".join(parts)


def translate_with_attention(run: Run, split: str) -> list[AttendedSentence]:
    """Translates the first sentences of a split, as `zoo translate` writes them."""
    translator = Translator((run,))
    restoring = _make_restorer(translator)
    corpus = translator.pairs(split)
    sources = run.experiment.source_corpus(corpus).sentences[:PAIRS]
    translations = []
    nbest_lists = restoring.translate(sources, BeamSearch(BEAM), PAIRS)
    for hypotheses, reference in zip(nbest_lists, corpus.sentences, strict=False):
        for best in hypotheses[:1]:
            weights = translators.attention_weights(translator, best.hypothesis, best.read)
            sentences = best.source, best.words, reference
            source, words, reference = ([*map(moses.unescaped, line)] for line in sentences)
            translations.append(AttendedSentence(source, words, reference, weights))
    return translations


def _make_restorer(translator):
    """Returns the replacement of unknown words: by the run's dictionary, if `zoo text` wrote one,
    and of marks that do not take part in attention."""
    file = translator.runs[0].path / translators.DICTIONARY
    dictionary = pairs.read_dictionary(str(file)) if file.exists() else {}
    strategy = translator.runs[0].experiment.data.unknowns
    keeps_marks = isinstance(strategy, PositionalAll) or not (strategy or dictionary)
    return Restoring(translator, dictionary, "keep" if keeps_marks else None)


def draw_attention(sentence: AttendedSentence, description: str) -> str:
    """Draws weights as squares whose areas are in proportion to them."""
    indent = _LETTER * max(map(len, sentence.translation), default=1) + 14
    top = _LETTER * max(map(len, sentence.source), default=1) + 14
    width, height = (
        indent + _CELL * len(sentence.source) + 4,
        top + _CELL * len(sentence.translation) + 4,
    )
    parts = []
    for column, word in enumerate(sentence.source):
        x = indent + _CELL * (column + 0.5) + 4
        parts.append(
            f'<text class="source" transform="translate({x:g} {top - 6}) rotate(-90)">'
            f"{escape(word)}</text>"
        )
    for row, word in enumerate(sentence.translation):
        y = top + _CELL * (row + 0.5)
        parts.append(f'<text class="target" x="{indent - 6}" y="{y + 4:g}">{escape(word)}</text>')
        for column, source_word in enumerate(sentence.source):
            weight = float(sentence.weights[row, column])
            size = (_CELL - 2) * weight**0.5
            x = indent + _CELL * (column + 0.5)
            parts.append(
                f"<g><title>{escape(word)} ← {escape(source_word)}: {number(weight, 2)}</title>"
                f'<rect class="cell" x="{x - _CELL / 2:g}" y="{y - _CELL / 2:g}" width="{_CELL}" '
                f'height="{_CELL}"/><rect class="weight" x="{x - size / 2:.1f}" '
                f'y="{y - size / 2:.1f}" width="{size:.1f}" height="{size:.1f}"/></g>'
            )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(description)}"><svg '
        f'class="attention" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(description)}">{"".join(parts)}</svg></div>'
    )
