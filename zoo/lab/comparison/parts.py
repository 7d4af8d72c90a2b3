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
        every = parts[ALL]
        share = unknown.tokens / every.tokens
        parts[SPREAD] = Part(every.tokens, every.loss + share * math.log(types + 1))
    seen = [part for name, part in bands.items() if name not in (UNKNOWN, UNSEEN_WORDS)]
    if tokens := sum(part.tokens for part in seen):
        parts[SEEN_WORDS] = Part(tokens, sum(part.tokens * part.loss for part in seen) / tokens)
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
    found = {name: [*map(parts_from_passport, passports)] for name, passports in groups.items()}
    parts_of = [of for of_runs in found.values() for of in of_runs]
    order = [name for name in ORDER if any(name in of for of in parts_of)]
    weights = MIXTURE in order
    counted = {name: _format_tokens(of_runs, order) for name, of_runs in found.items()}
    alike = len({*map(tuple, counted.values())}) == 1
    rows = [["tokens", *next(iter(counted.values()))]] if alike else []
    for name, passports in groups.items():
        losses = [
            _format_mean([of[part].loss for of in found[name] if part in of]) for part in order
        ]
        rows.append([name, *losses, *[_format_weight(passports)] * weights])
        if not alike:  # trained on different texts
            rows.append(["  its tokens", *counted[name]])
    if alike and len(groups) == 2:
        rows += _difference_rows(groups, found, order)
    header = [f"{title}, in parts: nats/token", *order, *["l"] * weights]
    columns = itertools.zip_longest(header, *rows, fillvalue="")
    blocks = [([name], [[cell] for cell in cells]) for name, *cells in columns]
    for table in beside(blocks, labels=1):
        yield from table
    for part in (SEEN_WORDS, UNSEEN_WORDS, MIXTURE):
        several = [_part_losses(name, groups[name], found[name], part) for name in groups]
        differences = paired.loss_lines([runs for runs in several if runs is not None])
        if differences:
            yield f"  {_TITLES[part]}:"
            yield from (f"  {line}" for line in differences)


def _difference_rows(groups, found, order) -> list[list[str]]:
    """Returns rows of the second group's figures less the first's, and of their 95 % interval."""
    rows: list[list[str]] = [["difference"], ["  95 %, from"], ["  to"]]
    for part in order:
        told: tuple[str, ...] = ("", "", "")
        if part != SPREAD:
            several = [_part_losses(name, groups[name], found[name], part) for name in groups]
            kept = [runs for runs in several if runs is not None and runs.statistics]
            difference = paired.compare_losses(*kept) if len(kept) == 2 else None
            if difference is not None:
                told = tuple(f"{nats:.4f}" for nats in (difference.nats, *difference.interval))
        for row, cell in zip(rows, told, strict=True):
            row.append(cell)
    return rows if any(cell for cell in rows[0][1:]) else []


def _part_losses(name, passports, parts, part) -> GroupLosses | None:
    """Returns the figures of a group on a part; None unless each of its runs has it."""
    if not all(part in of for of in parts):
        return None
    kept = [passport["place"].read_scores(passport) for passport in passports]
    found = tuple(
        part_statistics(passport, arrays, part)
        for passport, arrays in zip(passports, kept, strict=True)
        if arrays is not None
    )
    whole = len(found) == len(passports) and len({one.shape for one in found}) == 1
    return GroupLosses(name, tuple(of[part].loss for of in parts), found if whole else ())


def _format_tokens(of_runs, order):
    """Formats the tokens of each part, which the seeds of a group share."""
    tokens = [next((of[part].tokens for of in of_runs if part in of), 0) for part in order]
    return [f"{count:,}" for count in tokens]


def _format_mean(losses):
    return f"{math.fsum(losses) / len(losses):.4f}" if losses else "-"


def _format_weight(passports):
    mixtures = [passport["figures"].get("mixture") for passport in passports]
    weights = [float(mixture["weight"]) for mixture in mixtures if mixture]
    return f"{np.mean(weights):.4f}" if weights else "-"
