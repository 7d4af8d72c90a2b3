"""A text coloured by how much better one of two runs predicts each word."""

import math

from zoo.evaluation.reports.report_html import elements, word_details
from zoo.evaluation.reports.report_html.elements import number, text
from zoo.evaluation.reports.report_html.text_predictions import Shown

# Levels of a difference, nats: below the first, the runs are alike.
LEVELS = (0.5, 2, 4)


def is_same_text(one: Shown, other: Shown) -> bool:
    """Whether two runs were shown the same tokens and count the same ones."""
    return [_token(row) for row in one.rows] == [_token(row) for row in other.rows]


def _token(row):
    return row.sentence, row.position, row.word, row.counted


def level(gain: float) -> str:
    """Returns the class of a difference: "a1" to "a3" for the first run, "b1" to "b3", or "s0"."""
    size = sum(abs(gain) >= least for least in LEVELS)
    return f"{'a' if gain > 0 else 'b'}{size}" if size else "s0"


def levels(one: str, other: str) -> list[tuple[str, str]]:
    """Returns (class, its meaning) of all levels."""
    names = [f"from {least:g} nats" for least in LEVELS]
    first = [(f"a{size}", f"{one} better {name}") for size, name in enumerate(names, 1)]
    second = [(f"b{size}", f"{other} better {name}") for size, name in enumerate(names, 1)]
    return [*reversed(first), ("s0", "alike"), *second]


def gains(one: Shown, other: Shown) -> list[float]:
    """Returns log p of the first run minus log p of the second for each token, nats."""
    return [
        second.surprisal_nats - first.surprisal_nats
        for first, second in zip(one.rows, other.rows, strict=True)
    ]


def about(one: Shown, other: Shown, gain: list[float]) -> str:
    """Describes the total difference over the counted tokens of the text."""
    counted = [(value, row) for value, row in zip(gain, one.rows, strict=True) if row.counted]
    total, tokens = (sum(value for value, _ in counted), sum(row.words for _, row in counted))
    better = one.run if total > 0 else other.run
    return text(
        f"On these {tokens:,} tokens {better} is better by {number(abs(total), 2)} nats in "
        f"all; the section below has the whole text with its interval."
    )


def data(one: Shown, other: Shown, gain: list[float]) -> str:
    """Returns the details of all words under both runs as JSON."""
    details = []
    for of_one, of_other, value in zip(
        word_details.details(one), word_details.details(other), gain, strict=True
    ):
        parts = [
            {**part, "run": f"{shown.run}: {detail['about'][0]}"}
            for shown, detail in ((one, of_one), (other, of_other))
            for part in detail["parts"]
        ]
        better = one.run if value > 0 else other.run
        line = f"{better} is better by {number(abs(value), 2)} nats"
        lines = of_one["about"] if math.isnan(value) else [line]
        details.append({"word": of_one["word"], "about": lines, "parts": parts})
    return elements.json_data(details)
