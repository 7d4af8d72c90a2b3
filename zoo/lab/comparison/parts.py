"""Figures of runs in parts: words by their training count, and under the mixture of unseen words.

A difference between two models on all words may lie in words that training never saw. The table has
the log-perplexity of each band of `perplexity.BANDS`, of all words seen in training, and under the
mixture of `zoo.lab.evaluation.mixtures`, and for two models the difference of each with its 95 %
interval; the lines below it are paired tests as in `zoo.lab.comparison.paired`. Where out-of-
vocabulary words are counted as <unk>, "spread" is the figure of all words if <unk> and the K out-
of-vocabulary types of the text share its probability evenly, so that each of their tokens costs
log(K + 1) nats more.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.lab.comparison import paired
from zoo.lab.comparison.paired import GroupLosses
from zoo.lab.evaluation import item_scores, mixtures
from zoo.lab.evaluation.figures import PerplexityPassport
from zoo.lab.evaluation.perplexity import BAND_NAMES, UNKNOWN
from zoo.lab.table import NATS, Column, Table

ALL, SPREAD, SEEN_WORDS, UNSEEN_WORDS, MIXTURE = "all", "spread", "seen", "unseen", "mixture"
ORDER = (ALL, SPREAD, UNKNOWN, *BAND_NAMES, SEEN_WORDS, MIXTURE)
_TITLES = {
    SEEN_WORDS: "words seen in training",
    UNSEEN_WORDS: "words never seen in training",
    MIXTURE: "all words, with (1 - l) p + l/N over the N words without training text",
}


class Part(NamedTuple):
    """The figures of a part of a text."""

    tokens: int
    loss: float  # nats per token


def parts_from_passport(passport: PerplexityPassport) -> dict[str, Part]:
    """Returns {name: Part} of a passport's text: all words, its bands, and, where they exist,
    spread, seen words and mixture."""
    figures = passport.figures
    bands = {row.band: Part(row.tokens, row.log_perplexity) for row in figures.bands}
    parts = {ALL: Part(passport.tokens, figures.log_perplexity), **bands}
    types = passport.out_of_vocabulary_types
    unknown = bands.get(UNKNOWN)
    if types and unknown:
        total = parts[ALL]
        share = unknown.tokens / total.tokens
        parts[SPREAD] = Part(total.tokens, total.loss + share * math.log(types + 1))
    seen_bands = [part for name, part in bands.items() if name not in (UNKNOWN, UNSEEN_WORDS)]
    tokens = sum(part.tokens for part in seen_bands)
    if tokens:
        loss = sum(part.tokens * part.loss for part in seen_bands) / tokens
        parts[SEEN_WORDS] = Part(tokens, loss)
    if figures.mixture:
        parts[MIXTURE] = Part(passport.tokens, figures.mixture.log_perplexity)
    return parts


def part_statistics(
    passport: PerplexityPassport, arrays: item_scores.Arrays, part: str
) -> np.ndarray:
    """Computes the sentences' statistics of a part, as `item_scores.statistics` does of all words;
    not of `SPREAD`."""
    band = np.asarray(arrays["band"])
    if part == ALL:
        return item_scores.statistics(arrays)
    if part == MIXTURE:
        mixture = passport.figures.mixture
        assert mixture is not None
        log_prob = mixtures.mix(arrays["log_prob"], band == 0, mixture.weight, mixture.words)
        return item_scores.statistics(arrays, log_prob=log_prob)
    mask = band > 0 if part == SEEN_WORDS else band == item_scores.BAND_NUMBERS[part]
    return item_scores.statistics(arrays, mask)


def part_lines(title: str, groups: Mapping[str, Sequence[PerplexityPassport]]) -> Iterator[str]:
    """Yields the table of the parts of a text, from {group: passports of its seeds}, and the tests
    between groups on three of the parts."""
    parts = {name: [*map(parts_from_passport, passports)] for name, passports in groups.items()}
    names = {part for seeds in parts.values() for run_parts in seeds for part in run_parts}
    order = [name for name in ORDER if name in names]
    has_weights = MIXTURE in order
    counts = {name: _format_tokens(seeds, order) for name, seeds in parts.items()}
    same_counts = len({*map(tuple, counts.values())}) == 1
    rows: list[list[Any]] = [["tokens", *next(iter(counts.values()))]] if same_counts else []
    for name, passports in groups.items():
        row = [name, *(_mean(parts[name], part) for part in order)]
        rows.append([*row, _mean_weight(passports)] if has_weights else row)
        if not same_counts:  # trained on different texts
            rows.append(["  its tokens", *counts[name]])
    if same_counts and len(groups) == 2:
        rows += _difference_rows(groups, parts, order)
    headers = [*order, *["l"] * has_weights]
    columns = [Column(f"{title}, in parts: nats/token"), *(Column(name, NATS) for name in headers)]
    yield from Table(columns, rows).text(fold=True)
    for part in (SEEN_WORDS, UNSEEN_WORDS, MIXTURE):
        differences = paired.loss_lines([*_part_losses(groups, parts, part)])
        if differences:
            yield f"  {_TITLES[part]}:"
            yield from (f"  {line}" for line in differences)


def _difference_rows(groups, parts, order) -> list[list[Any]]:
    """Returns rows of the second group's figures less the first's, with 95 % intervals; or []."""
    columns: list[tuple[Any, ...]] = [("difference", "  95 %, from", "  to")]
    for part in order:
        difference = None
        if part != SPREAD:
            testable = [group for group in _part_losses(groups, parts, part) if group.statistics]
            difference = paired.compare_losses(*testable) if len(testable) == 2 else None
        figures = (difference.nats, *difference.interval) if difference else ("", "", "")
        columns.append(figures)
    rows = [[*cells] for cells in zip(*columns, strict=True)]
    return rows if any(cell != "" for cell in rows[0][1:]) else []


def _part_losses(groups, parts, part) -> Iterator[GroupLosses]:
    """Yields the losses on a part of those groups whose runs all have it."""
    for name, passports in groups.items():
        if all(part in run_parts for run_parts in parts[name]):
            statistics = [
                part_statistics(passport, arrays, part)
                for passport in passports
                if (arrays := item_scores.read(passport)) is not None
            ]
            losses = tuple(run_parts[part].loss for run_parts in parts[name])
            yield GroupLosses.from_statistics(name, losses, statistics)


def _format_tokens(seeds, order):
    """Formats the tokens of each part, by the first seed that has it; 0 if none does."""
    tokens = [next((parts[part].tokens for parts in seeds if part in parts), 0) for part in order]
    return [f"{count:,}" for count in tokens]


def _mean(seeds, part):
    """Computes the mean loss of the seeds that have a part; None if none does."""
    losses = [parts[part].loss for parts in seeds if part in parts]
    return math.fsum(losses) / len(losses) if losses else None


def _mean_weight(passports):
    """Computes the mean weight of the mixture over the seeds; None without any."""
    mixtures = [passport.figures.mixture for passport in passports]
    weights = [mixture.weight for mixture in mixtures if mixture]
    return float(np.mean(weights)) if weights else None
