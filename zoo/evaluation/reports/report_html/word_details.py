"""Details of the words of a text: surprisal, best words and features, as JSON for the script."""

import math
from typing import Any

from zoo.evaluation import best_words
from zoo.evaluation.best_words import Contributions
from zoo.evaluation.reports.report_html import elements
from zoo.evaluation.reports.report_html.text_predictions import Shown

# Features of a word that are shown one by one.
FEATURES = 8


def data(shown: Shown) -> str:
    """Returns the details of all words as JSON that HTML may contain."""
    return elements.json_data(details(shown))


def details(shown: Shown) -> list[dict[str, Any]]:
    """Returns {"word", "about": lines, "parts": the words that the model read} of each token."""
    found, position = [], 0
    for row in shown.rows:
        parts = [_part(shown, at) for at in range(position, position + row.words)]
        found.append({"word": visible(row.word), "about": about(row), "parts": parts})
        position += row.words
    return found


def visible(word: str) -> str:
    """Returns a word with visible signs for blanks and line breaks, where it is nothing else."""
    return word if word.strip() else word.replace("\n", "⏎").replace(" ", "␣").replace("\t", "⇥")


def about(row: best_words.Row) -> list[str]:
    """Describes a word: its surprisal, its probability, and how the model knows it."""
    if math.isnan(row.surprisal_nats):
        return ["not predicted: the text begins with it"]
    lines = [
        f"surprisal {elements.number(row.surprisal_nats, 2)} nats, "
        f"{elements.number(row.surprisal_bits, 2)} bits; "
        f"probability {elements.probability(-row.surprisal_nats)}",
    ]
    if not row.known:
        lines.append("read as an unknown word")
    elif row.read_as != row.word:
        lines.append(f"read as {row.read_as}")
    times = "once" if row.training_count == 1 else f"{row.training_count:,} times"
    lines.append(f"{times} in training" if row.training_count else "never in training")
    if not row.counted:
        lines.append("not counted in the perplexity")
    return lines


def _part(shown, position):
    """Returns the details of a word that the model read."""
    lexicon, best = shown.words, shown.best
    part: dict[str, Any] = {"read": visible(lexicon[shown.text.words[position]])}
    part["best"] = [
        [visible(lexicon[one]), elements.probability(float(log_prob))]
        for one, log_prob in zip(best.words[position], best.log_probs[position], strict=True)
    ]
    if shown.features is not None:
        part["why"] = contributions(shown.features[position])
    return part


def contributions(parts: Contributions) -> list[list[str]]:
    """Returns (name, nats) of the parts of a log-probability, the largest features first."""
    lines = [("background, log b(x)", parts.log_background), *parts.features[:FEATURES]]
    if further := parts.features[FEATURES:]:
        lines.append((f"{len(further):,} further features", sum(nats for _, nats in further)))
    lines += [("− log Z", -parts.log_z), ("sum, log p(x | h)", parts.log_prob)]
    return [[name, elements.number(nats, 2)] for name, nats in lines]
