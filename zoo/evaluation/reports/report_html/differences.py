"""Two runs side by side: the words of a text where their log-probabilities differ most."""

from typing import NamedTuple

import numpy as np

from zoo.errors import UserError
from zoo.evaluation import item_scores, kept_words
from zoo.evaluation.comparable import check_comparable
from zoo.evaluation.kept_words import KeptWords
from zoo.evaluation.reports import paired
from zoo.evaluation.reports.report_html import elements
from zoo.evaluation.reports.report_html.elements import number, text
from zoo.evaluation.reports.report_html.subjects import Subject, comparable_groups
from zoo.lexicon import Lexicon

# Words that are shown in each direction, and words of context before each.
MOST, CONTEXT = 12, 8


class Difference(NamedTuple):
    """A word of a text under two runs.

    Attributes:
      sentence: its number, from 1.
      before: the words before it in its sentence, the last `CONTEXT` of them.
      word: as the models read it.
      one: log p of the first run, nats.
      other: log p of the second run, nats.
    """

    sentence: int
    before: str
    word: str
    one: float
    other: float


def section(subjects: list[Subject]) -> str:
    """Compares the first run with each other run on each text that both were judged on.

    Args:
      subjects: the runs.
    """
    if len(subjects) < 2:
        return elements.missing("", "give two runs or more to see them side by side.")
    by_name, parts = {one.name: one for one in subjects}, []
    for group, of_runs in comparable_groups(subjects).items():
        first, *others = of_runs
        for other in others:
            parts.append(f"<h3>{text(first)} and {text(other)}, {text(group)}</h3>")
            parts.append(_pair(by_name[first], by_name[other], of_runs))
    alone = {one.name for one in subjects if one.columns} - {
        name
        for of_runs in comparable_groups(subjects).values()
        for name in of_runs
        if len(of_runs) > 1
    }
    parts += [elements.missing(name, why) for name, why in _alone(subjects, alone)]
    parts += [elements.missing(one.name, one.no_columns) for one in subjects if not one.columns]
    return "".join(parts)


def _alone(subjects, names):
    """Yields (run, why it is not compared) of runs without any comparable figure."""
    judged = [one for one in subjects if one.columns]
    for one in judged:
        if one.name not in names:
            continue
        other = next((other for other in judged if other is not one), None)
        why = "no other run has a figure to compare with."
        if other is not None:
            try:
                _check(one, other)
            except UserError as error:
                why = str(error)
        yield one.name, why


def _check(one, other):
    for column, passport in one.columns.items():
        for column_of_other, passport_of_other in other.columns.items():
            if column.split == column_of_other.split:
                check_comparable(passport, passport_of_other, (one.name, other.name))
    raise UserError(f"{one.name} and {other.name} were judged on different texts.")


def _pair(one, other, of_runs):
    arrays = [of_runs[run.name]["place"].read_scores(of_runs[run.name]) for run in (one, other)]
    losses = [float(of_runs[run.name]["figures"]["log_perplexity"]) for run in (one, other)]
    if any(scores is None for scores in arrays):
        line = (
            f"{one.name} {losses[0]:.4f}, {other.name} {losses[1]:.4f} nats per token; without "
            "the kept scores of both there is neither an interval nor a test."
        )
        return elements.paragraph(text(line))
    runs = [
        paired.Runs(run.name, (loss,), (item_scores.statistics(scores),))
        for run, loss, scores in zip((one, other), losses, arrays, strict=True)
    ]
    lines = elements.items(text(line.strip()) for line in paired.loss_lines(runs))
    try:
        kept = [
            _kept(run, of_runs[run.name], scores)
            for run, scores in zip((one, other), arrays, strict=True)
        ]
    except UserError as error:
        return lines + elements.missing("Word by word", str(error))
    found = differences(*kept, one.run.lexicon)
    return lines + _tables(one, other, found) + _shares(one, other, kept)


def _kept(subject, passport, arrays):
    if subject.run is None:
        raise UserError(subject.no_run)
    return kept_words.read(subject.run, passport, arrays)


def differences(one: KeptWords, other: KeptWords, lexicon: Lexicon) -> list[Difference]:
    """Returns the words of a text, the most in favour of the first run first.

    The first and the last `MOST` words are returned; words of one difference are in text order.

    Args:
      one: the scores of the first run.
      other: the scores of the second run on the same text.
      lexicon: of the first run.
    """
    with np.errstate(invalid="ignore"):  # of two words of probability 0
        gain = one.log_prob.astype(np.float64) - other.log_prob.astype(np.float64)
    order = np.argsort(-np.nan_to_num(gain, nan=0.0), kind="stable")
    chosen = order if len(order) <= 2 * MOST else np.concatenate([order[:MOST], order[-MOST:]])
    found = []
    for index in chosen.tolist():
        position = int(one.positions[index])
        sentence, place = one.text.position(position)
        begin = max(position - place + 1, position - CONTEXT)
        before = " ".join(lexicon.words[word] for word in one.text.words[begin:position])
        word = lexicon.words[one.text.words[position]]
        log_probs = float(one.log_prob[index]), float(other.log_prob[index])
        found.append(Difference(sentence, before, word, *log_probs))
    return found


def _tables(one, other, found):
    first = [row for row in found if row.one > row.other][:MOST]
    second = [row for row in reversed(found) if row.one < row.other][:MOST]
    tables = []
    for better, worse, rows in ((one, other, first), (other, one, second)):
        if not rows:
            continue
        cells = [
            (
                f'<span class="before">{text(row.before)}</span> <strong>{text(row.word)}</strong>',
                elements.probability(row.one),
                elements.probability(row.other),
                "+" + number(abs(row.one - row.other), 2),
                f"{row.sentence:,}",
            )
            for row in rows
        ]
        header = ("words before, and the word", f"p, {one.name}", f"p, {other.name}")
        header = (*header, "nats", "sentence")
        caption = f"Words that {better.name} predicts better than {worse.name}, most of all"
        tables.append(elements.table(header, cells, caption))
    return "".join(tables)


def _shares(one, other, kept):
    """Returns a sentence on how many words each run predicts better."""
    log_probs = [scores.log_prob for scores in kept]
    better, worse = (
        int((log_probs[0] > log_probs[1]).sum()),
        int((log_probs[0] < log_probs[1]).sum()),
    )
    count = len(log_probs[0])
    return elements.paragraph(
        text(
            f"Of {count:,} counted words {one.name} predicts {better:,} better "
            f"({better / count:.1%}), and {other.name} {worse:,} ({worse / count:.1%})."
            if count
            else ""
        )
    )
