"""Attention of translations: for each word, the source words that it attends to."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.alignment import PositionalAll
from zoo.decoding import BeamSearch
from zoo.evaluation import translators
from zoo.evaluation.reports.report_html import elements
from zoo.evaluation.reports.report_html.elements import number, text
from zoo.evaluation.reports.report_html.subjects import Subject
from zoo.evaluation.run import Run
from zoo.evaluation.translators import Restoring, Translator
from zoo.models import SequenceToSequence
from zoo.sources import moses, pairs

# Pairs that are shown, and the beam of their translations.
PAIRS, BEAM = 4, 5
_CELL, _LETTER = 20, 8


class Attended(NamedTuple):
    """A translation with its attention."""

    source: Sequence[str]
    translation: Sequence[str]
    reference: Sequence[str]
    weights: np.ndarray  # [T, S]


def section(subject: Subject, split: str) -> str:
    """Draws the attention of the first translations of a split."""
    assert subject.run is not None
    parts = []
    for place, one in enumerate(translations(subject.run, split)):
        about = f"Attention of the translation of sentence {place + 1} by {subject.name}"
        strongest = [
            f"{text(word)} ← {text(one.source[best])} ({number(float(row[best]), 2)})"
            for word, row, best in zip(
                one.translation, one.weights, one.weights.argmax(-1).tolist(), strict=True
            )
        ]
        parts.append(
            f"<figure>{drawing(one, about)}<figcaption>{text(' '.join(one.source))}<br>→ "
            f"{text(' '.join(one.translation))}<br>reference: {text(' '.join(one.reference))}"
            f"</figcaption></figure>" + elements.more("Strongest links", elements.items(strongest))
        )
    return "".join(parts)


def has_attention(run: Run | None) -> bool:
    """Whether a run is an encoder-decoder with attention."""
    model = run and run.experiment.model
    return isinstance(model, SequenceToSequence) and model.attention is not None


def translations(run: Run, split: str) -> list[Attended]:
    """Translates the first sentences of a split, as `zoo translate` writes them."""
    translator = Translator((run,))
    restoring = _restoring(translator)
    corpus = translator.pairs(split)
    sources = run.experiment.source_of(corpus).sentences[:PAIRS]
    read = restoring.annotate(sources)
    found = []
    hypotheses = translator.translate(read, BeamSearch(BEAM), PAIRS)
    for source, seen, reference, best in zip(
        sources, read, corpus.sentences, hypotheses, strict=False
    ):
        if best:
            weights = translators.attention_weights(translator, best[0], seen)
            of_text = source, restoring.words(best[0], source), reference
            source, words, reference = ([*map(moses.unescaped, words)] for words in of_text)
            found.append(Attended(source, words, reference, weights))
    return found


def _restoring(translator):
    """Returns the replacement of unknown words: by the run's dictionary, if `zoo text` wrote one,
    and of marks that do not take part in attention."""
    file = translator.runs[0].path / translators.DICTIONARY
    dictionary = pairs.read_dictionary(str(file)) if file.exists() else {}
    strategy = translator.runs[0].experiment.data.unknowns
    kept = isinstance(strategy, PositionalAll) or not (strategy or dictionary)
    return Restoring(translator, dictionary, "keep" if kept else None)


def drawing(one: Attended, about: str) -> str:
    """Draws weights as squares whose areas are in proportion to them."""
    left = _LETTER * max(map(len, one.translation), default=1) + 14
    top = _LETTER * max(map(len, one.source), default=1) + 14
    width, height = left + _CELL * len(one.source) + 4, top + _CELL * len(one.translation) + 4
    parts = []
    for column, word in enumerate(one.source):
        x = left + _CELL * (column + 0.5) + 4
        parts.append(
            f'<text class="source" transform="translate({x:g} {top - 6}) rotate(-90)">{text(word)}'
            "</text>"
        )
    for row, word in enumerate(one.translation):
        y = top + _CELL * (row + 0.5)
        parts.append(f'<text class="target" x="{left - 6}" y="{y + 4:g}">{text(word)}</text>')
        for column, other in enumerate(one.source):
            weight = float(one.weights[row, column])
            size = (_CELL - 2) * weight**0.5
            x = left + _CELL * (column + 0.5)
            parts.append(
                f"<g><title>{text(word)} ← {text(other)}: {number(weight, 2)}</title>"
                f'<rect class="cell" x="{x - _CELL / 2:g}" y="{y - _CELL / 2:g}" width="{_CELL}" '
                f'height="{_CELL}"/><rect class="weight" x="{x - size / 2:.1f}" '
                f'y="{y - size / 2:.1f}" width="{size:.1f}" height="{size:.1f}"/></g>'
            )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(about)}"><svg '
        f'class="attention" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{text(about)}">{"".join(parts)}</svg></div>'
    )
