"""Figures of runs in parts: words by their training count, and under the mixture of unseen words.

A difference between two models on all words may lie in words that training never saw. The table has
the log-perplexity of each band of `perplexity.BANDS`, of all words seen in training, and under the
mixture of `zoo.lab.evaluation.mixtures`, and for two models the difference of each with its 95 %
interval; the lines below it are paired tests as in `zoo.lab.comparison.paired`. Where out-of-
vocabulary words are counted as <unk>, "spread" is the figure of all words if <unk> and the K out-
of-vocabulary types of the text share its probability evenly, so that each of their tokens costs
log(K + 1) nats more.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoo.lab.comparison import paired
from zoo.lab.comparison.paired import GroupLosses
from zoo.lab.evaluation import item_scores, mixtures
from zoo.lab.evaluation.perplexity import BAND_NAMES, UNKNOWN
from zoo.lab.runs.text_tables import join_tables as beside

ALL, SPREAD, SEEN_WORDS, UNSEEN_WORDS, MIXTURE = "all", "spread", "seen", "unseen", "mixture"
ORDER = (ALL, SPREAD, UNKNOWN, *BAND_NAMES, SEEN_WORDS, MIXTURE)
# {name of a band: its number in kept scores}
_NUMBERS = {UNKNOWN: item_scores.UNKNOWN, **{name: i for i, name in enumerate(BAND_NAMES)}}
_TITLES = {
    SEEN_WORDS: "words seen in training",
    UNSEEN_WORDS: "words never seen in training",
    MIXTURE: "all words, with (1 - l) p + l/N over the N words without training text",
}


class Part(NamedTuple):
    tokens: int
    loss: float  # nats per token


def parts_from_passport(passport: dict) -> dict[str, Part]:
    """Returns a passport's parts by name: all, bands, seen, and spread and mixture if any."""
    figures = passport["figures"]
    bands = {
        row["band"]: Part(row["tokens"], float(row["log_perplexity"]))
        for row in figures.get("bands", ())
    }
    parts = {ALL: Part(passport["tokens"], float(figures["log_perplexity"])), **bands}
    types = passport.get("out_of_vocabulary_types")
    if types and (unknown := bands.get(UNKNOWN)):
        total = parts[ALL]
        share = unknown.tokens / total.tokens
        parts[SPREAD] = Part(total.tokens, total.loss + share * math.log(types + 1))
    seen_parts = [part for name, part in bands.items() if name not in (UNKNOWN, UNSEEN_WORDS)]
    if tokens := sum(part.tokens for part in seen_parts):
        parts[SEEN_WORDS] = Part(
            tokens, sum(part.tokens * part.loss for part in seen_parts) / tokens
        )
    if mixture := figures.get("mixture"):
        parts[MIXTURE] = Part(passport["tokens"], float(mixture["log_perplexity"]))
    return parts


def part_statistics(passport: dict, arrays: item_scores.Arrays, part: str) -> np.ndarray:
    """Computes the statistics of the sentences of a part, see `item_scores.statistics`."""
    band = np.asarray(arrays["band"])
    if part == ALL:
        return item_scores.statistics(arrays)
    if part == MIXTURE:
        mixture = passport["figures"]["mixture"]
        weight, words = float(mixture["weight"]), int(mixture["words"])
        log_prob = mixtures.mix(arrays["log_prob"], band == 0, weight, words)
        return item_scores.statistics(arrays, log_prob=log_prob)
    return item_scores.statistics(
        arrays, band > 0 if part == SEEN_WORDS else band == _NUMBERS[part]
    )


def part_lines(title: str, groups: Mapping[str, Sequence[dict]]) -> Iterator[str]:
    """Yields the table of the parts of a text and, for each part, the tests of the differences."""
    parts_by_group = {
        name: [*map(parts_from_passport, passports)] for name, passports in groups.items()
    }
    all_parts = [parts for run_parts in parts_by_group.values() for parts in run_parts]
    order = [name for name in ORDER if any(name in parts for parts in all_parts)]
    weights = MIXTURE in order
    token_counts = {
        name: _format_tokens(run_parts, order) for name, run_parts in parts_by_group.items()
    }
    same_counts = len({*map(tuple, token_counts.values())}) == 1
    rows = [["tokens", *next(iter(token_counts.values()))]] if same_counts else []
    for name, passports in groups.items():
        means = [
            _format_mean([parts[part].loss for parts in parts_by_group[name] if part in parts])
            for part in order
        ]
        rows.append([name, *means, *[_format_weight(passports)] * weights])
        if not same_counts:  # trained on different texts
            rows.append(["  its tokens", *token_counts[name]])
    if same_counts and len(groups) == 2:
        rows += _difference_rows(groups, parts_by_group, order)
    header = [f"{title}, in parts: nats/token", *order, *["l"] * weights]
    columns = itertools.zip_longest(header, *rows, fillvalue="")
    blocks = [([name], [[cell] for cell in cells]) for name, *cells in columns]
    for table in beside(blocks, labels=1):
        yield from table
    for part in (SEEN_WORDS, UNSEEN_WORDS, MIXTURE):
        losses = [_part_losses(name, groups[name], parts_by_group[name], part) for name in groups]
        differences = paired.loss_lines([runs for runs in losses if runs is not None])
        if differences:
            yield f"  {_TITLES[part]}:"
            yield from (f"  {line}" for line in differences)


def _difference_rows(groups, parts_by_group, order) -> list[list[str]]:
    """Returns rows of the second group's figures less the first's, and of their 95 % interval."""
    rows: list[list[str]] = [["difference"], ["  95 %, from"], ["  to"]]
    for part in order:
        cells: tuple[str, ...] = ("", "", "")
        if part != SPREAD:
            losses = [
                _part_losses(name, groups[name], parts_by_group[name], part) for name in groups
            ]
            testable = [runs for runs in losses if runs is not None and runs.statistics]
            difference = paired.compare_losses(*testable) if len(testable) == 2 else None
            if difference is not None:
                cells = tuple(f"{nats:.4f}" for nats in (difference.nats, *difference.interval))
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    return rows if any(cell for cell in rows[0][1:]) else []


def _part_losses(name, passports, parts, part) -> GroupLosses | None:
    """Returns the figures of a group on a part; None unless each of its runs has it."""
    if not all(part in run_parts for run_parts in parts):
        return None
    saved_scores = [passport["place"].read_scores(passport) for passport in passports]
    statistics = tuple(
        part_statistics(passport, arrays, part)
        for passport, arrays in zip(passports, saved_scores, strict=True)
        if arrays is not None
    )
    complete = len(statistics) == len(passports) and len({array.shape for array in statistics}) == 1
    return GroupLosses(
        name, tuple(run_parts[part].loss for run_parts in parts), statistics if complete else ()
    )


def _format_tokens(run_parts, order):
    """Formats the tokens of each part, which the seeds of a group share."""
    tokens = [
        next((parts[part].tokens for parts in run_parts if part in parts), 0) for part in order
    ]
    return [f"{count:,}" for count in tokens]


def _format_mean(losses):
    return f"{math.fsum(losses) / len(losses):.4f}" if losses else "-"


def _format_weight(passports):
    mixtures = [passport["figures"].get("mixture") for passport in passports]
    weights = [float(mixture["weight"]) for mixture in mixtures if mixture]
    return f"{np.mean(weights):.4f}" if weights else "-"
