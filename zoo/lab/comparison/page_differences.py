"""Two recipes side by side: the words of a text where their log-probabilities differ most."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.alignment import PositionalAll
from zoo.decoding import BeamSearch
from zoo.errors import UserError
from zoo.lab.comparison import html_parts, paired
from zoo.lab.comparison.comparison import Comparison, group_by_text, list_unjudged, read_losses
from zoo.lab.comparison.html_parts import number
from zoo.lab.evaluation import best_words, item_scores, translators
from zoo.lab.evaluation.best_words import ScoredWords
from zoo.lab.evaluation.run import Run, first_test
from zoo.lab.evaluation.translators import Restoring, Translator
from zoo.lab.table import COUNT, Column, Table, escape
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
    """Returns the section that compares each recipe with the first, on each text of both."""
    parts: list[str] = []
    reasons: list[tuple[str, str]] = []
    compared: set[str] = set()
    for index, passports in enumerate(group_by_text(comparison).values()):
        baseline, *candidates = [recipe for recipe in comparison.groups if recipe.select(passports)]
        for candidate in candidates:
            compared |= passports.keys()
            name = f"{baseline.name} and {candidate.name}"
            try:
                body = _compare_pair(comparison, (baseline, candidate), passports, folded=index > 0)
                split = next(iter(passports.values())).split
                parts.append(f"<h3>{escape(name)}, {escape(split)}</h3>{body}")
            except UserError as error:
                reasons.append((name, str(error)))
    note = "no other recipe has a figure to compare with: the first section tells what differs."
    results, _ = comparison.available_results
    judged = [recipe for recipe in comparison.groups if recipe.select(results)]
    reasons += [(recipe.name, note) for recipe in judged if not compared & {*recipe.runs}]
    return "".join(parts) + html_parts.omissions([*reasons, *list_unjudged(comparison)])


def _compare_pair(comparison, recipes, passports, folded):
    """Returns the HTML of the tests and most different words of two recipes on a text; `folded`
    hides the words. Raises UserError if neither saved scores nor seeds allow a test."""
    losses = [*read_losses(recipes, passports).values()]
    lines = html_parts.bullet_list(escape(line.strip()) for line in paired.loss_lines(losses))
    if not all(group.statistics for group in losses):
        reason = (
            "without the kept scores of both there is neither an interval nor a test by sentences: "
            "python -m zoo evaluate keeps them."
        )
        if all(len(group.losses) > 1 for group in losses):
            return lines + html_parts.omission(reason, "Word by word")
        raise UserError(reason)
    names = [next(iter(recipe.select(passports))) for recipe in recipes]
    try:
        words = [_read_words(comparison, name, passports[name]) for name in names]
    except UserError as error:
        return lines + html_parts.omission(str(error), "Word by word")
    lexicon = comparison.available_runs[0][names[0]].lexicon
    tables = _tables(names, largest_differences(words[0], words[1], lexicon))
    return (
        lines
        + _describe_shares(names, words, passports[names[0]].policies.batch)
        + (html_parts.collapsible("Word by word", tables) if folded else tables)
    )


def _read_words(comparison, name, passport) -> ScoredWords:
    """Reads the saved log-probabilities of a run's words; raises UserError if it has none."""
    runs, reasons = comparison.available_runs
    if name in reasons:
        raise UserError(reasons[name])
    return best_words.read(runs[name], passport, item_scores.read(passport))


def largest_differences(
    first: ScoredWords, second: ScoredWords, lexicon: Lexicon
) -> tuple[list[WordDifference], list[WordDifference]]:
    """Returns up to `MOST_WORDS` words where log p of the first run is higher by most, and as many
    where log p of the second is."""
    with np.errstate(invalid="ignore"):  # of two words of probability 0
        gain = first.log_prob.astype(np.float64) - second.log_prob.astype(np.float64)
    order = np.argsort(-np.nan_to_num(gain, nan=0.0), kind="stable")
    rows = _first_distinct(first, second, lexicon, order)
    reversed_rows = _first_distinct(first, second, lexicon, order[::-1])
    return (
        [row for row in rows if row.first > row.second],
        [row for row in reversed_rows if row.first < row.second],
    )


def _first_distinct(first, second, lexicon, order):
    """Returns the first `MOST_WORDS` words in an order; a word in the same context counts once."""
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


def _tables(names, differences):
    """Returns HTML tables of the words that the first run predicts better, and the second."""
    columns = [
        Column("words before"),
        Column("word"),
        *(Column(f"p, {name}", ".2g") for name in names),
    ]
    columns += [Column("nats", "+.2f"), Column("sentence", COUNT)]
    tables = ""
    for (better, worse), words in zip((names, names[::-1]), differences, strict=True):
        rows = [
            (
                word.before,
                word.word,
                html_parts.probability(word.first),
                html_parts.probability(word.second),
                abs(word.first - word.second),
                word.sentence,
            )
            for word in words
        ]
        caption = f"Words that {better} predicts better than {worse} by most; each context once"
        tables += Table(columns, rows).html(caption) if rows else ""
    return tables


def _describe_shares(names, words, batch):
    """Returns, as HTML, the shares of words that each run predicts better; `batch`: batch rows."""
    first, second = (scores.log_prob for scores in words)
    better, worse = int((first > second).sum()), int((first < second).sum())
    count = max(1, len(first))
    text = (
        f"Of {count:,} counted words {names[0]} predicts {better:,} better ({better / count:.1%}), "
        f"and {names[1]} {worse:,} ({worse / count:.1%})."
    )
    if batch:
        text += f" As in a perplexity, the state begins empty in each of {batch} rows of the text."
    return f"<p>{escape(text)}</p>"


# ----------- attention of translations: for each word, the source words that it attends to

# Pairs that are shown, and the beam of their translations.
PAIRS, BEAM = 4, 5


class AttendedSentence(NamedTuple):
    """A sentence with its translation, and the attention of each word to the source words."""

    source: Sequence[str]
    translation: Sequence[str]
    reference: Sequence[str]
    weights: np.ndarray  # [T, S]


def attention_section(comparison: Comparison, translators: Sequence[str], split: str | None) -> str:
    """Returns the section of translators' attention, without models that have none."""
    parts, reasons = [], []
    runs, missing = comparison.available_runs
    for name in translators:
        if name in missing:
            reasons.append((name, missing[name]))
        elif runs[name].experiment.model.attention is not None:  # type: ignore[attr-defined]
            try:
                figures = _draw_translations(name, runs[name], split)
                parts.append(f"<h3>{escape(name)}</h3>{figures}")
            except UserError as error:
                reasons.append((name, str(error)))
    return "".join(parts) + html_parts.omissions(reasons)


def _draw_translations(name, run, split):
    """Returns the attention of a run's first translations as figures."""
    figures = ""
    sentences = translate_with_attention(run, split or first_test(run.experiment))
    for index, sentence in enumerate(sentences, 1):
        description = f"Attention of the translation of sentence {index} by {name}"
        source, translation, reference = (escape(" ".join(words)) for words in sentence[:3])
        figures += (
            f"<figure>{draw_attention(sentence, description)}<figcaption>{source}<br>→ "
            f"{translation}<br>reference: {reference}</figcaption></figure>"
        )
    return figures


def translate_with_attention(run: Run, split: str) -> list[AttendedSentence]:
    """Translates the first sentences of a split as `zoo translate` does, with attention weights."""
    translator = Translator((run,))
    corpus = translator.pairs(split)
    sources = run.experiment.source_corpus(corpus).sentences[:PAIRS]
    translations = []
    nbest_lists = _make_restorer(translator).translate(sources, BeamSearch(BEAM), PAIRS)
    for hypotheses, reference in zip(nbest_lists, corpus.sentences, strict=False):
        for best in hypotheses[:1]:
            weights = translators.attention_weights(translator, best.hypothesis, best.read)
            sentences = best.source, best.words, reference
            source, words, reference = ([*map(moses.unescaped, line)] for line in sentences)
            translations.append(AttendedSentence(source, words, reference, weights))
    return translations


def _make_restorer(translator):
    """Makes the replacement of unknown words, by the run's dictionary if `zoo text` wrote one."""
    file = translator.runs[0].path / translators.DICTIONARY
    dictionary = pairs.read_dictionary(str(file)) if file.exists() else {}
    strategy = translator.runs[0].experiment.data.unknowns
    keeps_marks = isinstance(strategy, PositionalAll) or not (strategy or dictionary)
    return Restoring(translator, dictionary, "keep" if keeps_marks else None)


def draw_attention(sentence: AttendedSentence, description: str) -> str:
    """Returns the attention of a translation as an HTML table: squares whose areas are the
    weights."""
    label = escape(description)
    words = "".join(f'<th scope="col"><span>{escape(word)}</span></th>' for word in sentence.source)
    rows = ""
    for word, weights in zip(sentence.translation, sentence.weights.tolist(), strict=True):
        rows += f'<tr><th scope="row">{escape(word)}</th>'
        for source_word, weight in zip(sentence.source, weights, strict=False):
            link = escape(f"{word} ← {source_word}: {number(weight, 2)}")
            square = f'<i style="--side: {weight**0.5:.3f}"></i>'
            rows += f'<td title="{link}" aria-label="{link}">{square}</td>'
        rows += "</tr>"
    return (
        f'<div class="matrix" tabindex="0" role="region" aria-label="{label}"><table '
        f'aria-label="{label}"><thead><tr><td></td>{words}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
