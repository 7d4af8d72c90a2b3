"""A text coloured by surprisal, whose words show what the model expected in their place."""

import itertools
import math

from zoo.evaluation import surprisal
from zoo.evaluation.reports.report_html import elements, word_details
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.subjects import Subject
from zoo.evaluation.reports.report_html.text_predictions import Shown

# Levels of surprisal, nats: below 1, below 2 ... They have a colour and a bar each.
LEVELS = (1, 2, 4, 6, 8)


def section(subjects: list[Subject], shown: dict[str, Shown], left_out: dict[str, str]) -> str:
    """Shows the text under each run, and under two runs the differences of its words.

    Args:
      subjects: the runs.
      shown: the text with the predictions of the runs that have any, by their names.
      left_out: why the other runs do not have any.
    """
    panels = [
        (one.name, panel(shown[one.name], one.number)) for one in subjects if one.name in shown
    ]
    parts = [switches(panels)] if panels else []
    parts += [elements.missing(name, why) for name, why in left_out.items()]
    return "".join(parts)


def switches(panels: list[tuple[str, str]]) -> str:
    """Returns panels of which one is shown, with a button for each.

    Args:
      panels: (name, HTML).
    """
    if len(panels) == 1:
        return f'<div class="panel"><h3>{text(panels[0][0])}</h3>{panels[0][1]}</div>'
    buttons = "".join(
        f'<label><input type="radio" name="panel" value="{number}"{" checked" * (not number)}>'
        f"{text(name)}</label>"
        for number, (name, _) in enumerate(panels)
    )
    bodies = "".join(
        f'<div class="panel" data-panel="{number}"{" hidden" * (number > 0)}>{body}</div>'
        for number, (_, body) in enumerate(panels)
    )
    return f'<fieldset class="switch"><legend>Text under</legend>{buttons}</fieldset>{bodies}'


def panel(shown: Shown, number: int) -> str:
    """Returns the coloured text of a run, and the data of its words for the script.

    Args:
      shown: the text.
      number: of the run.
    """
    joint = "" if all(len(row.word) <= 1 or not row.start < row.end for row in shown.rows) else " "
    sentences: dict[int, list[str]] = {}
    for place, row in enumerate(shown.rows):
        sentences.setdefault(row.sentence, []).append(word(place, row, level(row.surprisal_nats)))
    body = "".join(
        _source(shown.sources, place) + f'<p class="sentence">{joint.join(words)}</p>'
        for place, words in enumerate(sentences.values())
    )
    counted = [row for row in shown.rows if row.counted == "yes"]
    tokens = sum(row.words for row in counted)
    nats = sum(row.surprisal_nats for row in counted) / tokens if tokens else math.nan
    about = (
        f"{shown.name}: the first {len(sentences):,} sentences, {tokens:,} counted tokens, "
        f"{elements.number(nats, 4)} nats per token on these."
    )
    why = elements.missing("Features", shown.why) if shown.why else ""
    return (
        elements.paragraph(text(about))
        + f'<div class="words" data-words="{number}"><div class="text" role="group" '
        f'aria-label="Text coloured by surprisal: arrow keys go from word to word">{body}</div>'
        '<div class="details" aria-live="polite"><p class="hint">Point at a word, tap it, or go '
        "to it with Tab and the arrow keys, to see the words that the model expected.</p></div>"
        f"</div>{why}"
        f'<script type="application/json" id="words-{number}">{word_details.data(shown)}</script>'
    )


def _source(sources, place):
    """Returns the source of a translation, or nothing."""
    if sources is None:
        return ""
    return f'<p class="source">{text(" ".join(sources[place]))}</p>'


def level(nats: float) -> str:
    """Returns the class of a surprisal: "s0" below the first of `LEVELS`, ... "off" without one.

    Args:
      nats: the surprisal, NaN where no word was predicted.
    """
    if math.isnan(nats):
        return "off"
    return f"s{sum(nats >= least for least in LEVELS)}"


def word(place: int, row: surprisal.Row, kind: str) -> str:
    """Returns a word of the text that shows its details.

    Args:
      place: of the token among the tokens of the text.
      row: of the token.
      kind: the class of its colour.
    """
    off = " uncounted" * (row.counted != "yes")
    shown = text(row.word).replace("\\n", "⏎") if row.word.strip() else "␣"
    return (
        f'<span class="w {kind}{off}" data-word="{place}" role="button" '
        f'tabindex="{0 if place == 0 else -1}">{shown}</span>'
    )


def scale(levels: list[tuple[str, str]]) -> str:
    """Returns the legend of the colours.

    Args:
      levels: (class, its meaning).
    """
    marks = "".join(f'<span class="w {kind}">{text(name)}</span> ' for kind, name in levels)
    return f'<p class="scale">{marks}</p>'


def surprisal_scale() -> str:
    """Returns the legend of the levels of surprisal."""
    ends = ["0", *map(str, LEVELS)]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    names.append(f"{ends[-1]} nats or more")
    return scale([(f"s{number}", name) for number, name in enumerate(names)])
