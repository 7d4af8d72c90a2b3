"""A text coloured by surprisal, whose words show what the model expected in their place."""

import itertools
import math

from zoo.evaluation import best_words
from zoo.evaluation.reports.report_html import difference_text, elements, word_details
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.text_predictions import Shown

# Levels of surprisal, nats: below 1, below 2 ... They have a colour and a bar each.
LEVELS = (1, 2, 4, 7, 10)


def section(shown: list[Shown], left_out: dict[str, str]) -> str:
    """Shows the text under each run, and the differences of the first from each other run."""
    panels = [(one.run, panel(one)) for one in shown]
    for other in shown[1:]:
        if difference_text.is_same_text(shown[0], other):
            name = f"{shown[0].run} against {other.run}"
            panels.append((name, difference_panel(shown[0], other)))
    parts = [switches(panels)] if panels else []
    return "".join([*parts, elements.all_missing(left_out.items())])


def switches(panels: list[tuple[str, str]]) -> str:
    """Returns panels of which one is shown, with a button for each."""
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


def panel(shown: Shown) -> str:
    """Returns the coloured text of a run."""
    counted = [row for row in shown.rows if row.counted]
    tokens, unknown = sum(row.words for row in counted), sum(not row.known for row in counted)
    nats = sum(row.surprisal_nats for row in counted) / tokens if tokens else math.nan
    about = (
        f"{shown.name}: the first {shown.rows[-1].sentence:,} sentences, {tokens:,} counted "
        f"tokens ({unknown:,} unknown), {elements.number(nats, 4)} nats per token on these."
    )
    kinds = [level(row.surprisal_nats) for row in shown.rows]
    why = elements.missing(shown.why, "Features") if shown.why else ""
    if not shown.best.words.size:
        why += elements.missing("this head spells its words and has no list of them.", "Best words")
    words = coloured(shown, kinds, str(shown.number), word_details.data(shown))
    return elements.paragraph(text(about)) + surprisal_scale() + words + why


def difference_panel(one: Shown, other: Shown) -> str:
    """Returns the text coloured by the difference of two runs."""
    gain = difference_text.gains(one, other)
    kinds = [difference_text.level(value) for value in gain]
    legend = scale(difference_text.levels(one.run, other.run))
    words = coloured(
        one, kinds, f"{one.number}-{other.number}", difference_text.data(one, other, gain)
    )
    return elements.paragraph(difference_text.about(one, other, gain)) + legend + words


def coloured(shown: Shown, kinds: list[str], name: str, data: str) -> str:
    """Returns a text whose words have colours and details."""
    joint, layout = ("", " characters") if shown.of_characters else (" ", "")
    sentences: dict[int, list[str]] = {}
    for place, (row, kind) in enumerate(zip(shown.rows, kinds, strict=True)):
        sentences.setdefault(row.sentence, []).append(word(place, row, kind))
    body = "".join(
        _source(shown.sources, place) + f'<p class="sentence">{joint.join(words)}</p>'
        for place, words in enumerate(sentences.values())
    )
    return (
        f'<div class="words" data-words="{name}"><div class="text{layout}" role="group" '
        f'aria-label="Text, whose words show their details: arrow keys go from word to word">'
        f'{body}</div><div class="details" aria-live="polite"><p class="hint">Point at a word, '
        "tap it, or go to it with Tab and the arrow keys, to see what the model expected.</p>"
        f'</div></div><script type="application/json" id="words-{name}">{data}</script>'
    )


def _source(sources, place):
    """Returns the source of a translation, or nothing."""
    if sources is None:
        return ""
    return f'<p class="source">{text(" ".join(sources[place]))}</p>'


def level(nats: float) -> str:
    """Returns the class of a surprisal: "s0" below the first of `LEVELS`, ... "off" without one."""
    if math.isnan(nats):
        return "off"
    return f"s{sum(nats >= least for least in LEVELS)}"


def word(place: int, row: best_words.Row, kind: str) -> str:
    """Returns a word of the text that shows its details."""
    # An unknown word looks easy: <unk> has the probability of all unknown words.
    off = " uncounted" * (not row.counted) + " unknown" * (not row.known)
    return (
        f'<span class="w {kind}{off}" data-word="{place}" role="button" '
        f'tabindex="{0 if place == 0 else -1}">{text(word_details.visible(row.word))}</span>'
    )


def scale(levels: list[tuple[str, str]]) -> str:
    """Returns the legend of the colours."""
    marks = "".join(f'<span class="w {kind}">{text(name)}</span> ' for kind, name in levels)
    return f'<p class="scale">{marks}</p>'


def surprisal_scale() -> str:
    """Returns the legend of the levels of surprisal."""
    ends = ["0", *map(str, LEVELS)]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    names.append(f"{ends[-1]} nats or more")
    levels = [(f"s{number}", name) for number, name in enumerate(names)]
    return scale([*levels, ("unknown", "read as <unk>, any unknown word")])
