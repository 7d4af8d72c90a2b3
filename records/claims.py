"""Differences between models, computed from records: each row of claims.tsv is one.

Rows of the table `CLAIMS` stand in docs/results.md, those of other tables on pages of its folder.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from records.cells import figures_of, grid, mean, p_cell, values
from records.rows import expand_runs, read_table
from zoo.lab.comparison import paired
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.significance import LEVEL
from zoo.lab.table import format_value

CLAIMS = "claims"


class Claim(NamedTuple):
    """A model beside an opponent, each of several seeds."""

    tables: tuple[str, ...]  # that show it
    model: str
    runs: tuple[str, ...]
    opponent: str
    opponent_runs: tuple[str, ...]
    text: str  # in words
    split: str
    section: str  # of a page in docs/results/; "" where `CLAIMS` does not show it
    advice: str

    @classmethod
    def from_row(cls, row: dict[str, str]) -> "Claim":
        """Reads a row of claims.tsv."""
        runs = {column: expand_runs(row[column]) for column in ("runs", "opponent_runs")}
        return cls(**{**row, **runs, "tables": tuple(row["tables"].split())})


def adjust_by_holm(p_values: list[float]) -> list[float]:
    """Corrects p values for the number of tests (Holm 1979).

        p'_(i) = min(1, max_{j <= i} (n - j + 1) p_(j))

    Args:
      p_values: of n tests, in any order; p_(j) is the j-th smallest.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, greatest = [0.0] * len(p_values), 0.0
    for position, index in enumerate(order):
        greatest = max(greatest, (len(p_values) - position) * p_values[index])
        adjusted[index] = min(1.0, greatest)
    return adjusted


def figures_by_seed(claim: Claim) -> list[Sequence[float]]:
    """Returns the figures of the model's seeds and of the opponent's: percent, or nats."""
    groups = claim.runs, claim.opponent_runs
    if is_about_answers(claim):
        return [
            values(runs, claim.split, lambda figures: 100 * figures.accuracy) for runs in groups
        ]
    return [figures_of(runs, claim.split).losses for runs in groups]


@functools.cache
def seed_cells(table: str) -> dict[Claim, str]:
    """Formats p by seeds of a table's rows; of all claims with a star where Holm's correction for
    their number lifts it to the level and above."""
    rows = [
        claim for claim in map(Claim.from_row, read_table("claims.tsv")) if table in claim.tables
    ]
    p_values = [significance.seeds_test(*figures_by_seed(claim)) for claim in rows]
    adjusted_p_values = adjust_by_holm(p_values) if table == CLAIMS else p_values
    return {
        claim: p_cell(p) + ("*" if p < LEVEL <= adjusted else "")
        for claim, p, adjusted in zip(rows, p_values, adjusted_p_values, strict=True)
    }


def tables() -> set[str]:
    """Returns the names of all tables of `losses`."""
    return {table for row in read_table("claims.tsv") for table in row["tables"].split()}


def is_about_answers(claim: Claim) -> bool:
    return ":" in claim.split


def accuracies() -> str:
    """Makes the table of shares of right answers, percent."""
    rows = []
    for claim, p in seed_cells(CLAIMS).items():
        if not is_about_answers(claim):
            continue
        model, opponent = figures_by_seed(claim)
        row = [claim.model, claim.opponent, claim.text, mean(model, ".1f"), mean(opponent, ".1f")]
        seed_counts = f"{len(model)} and {len(opponent)}"
        rows.append([*row, p, seed_counts, _advice(claim)])
    header = ["model", "against", "questions", "right, %", "the other, %", "p by seeds", "seeds"]
    return grid([*header, "so"], rows)


def losses(table: str = CLAIMS) -> str:
    """Makes a table of gains in log-perplexity, nats per token."""
    rows = []
    for claim, p in seed_cells(table).items():
        if is_about_answers(claim):
            continue
        model, opponent = (
            figures_of(runs, claim.split) for runs in (claim.runs, claim.opponent_runs)
        )
        difference = paired.compare_losses(model, opponent)
        verdict = paired.verdict(significance.seeds_test(model.losses, opponent.losses))
        gain, by_sentences = f"{opponent.loss - model.loss:.3f}", ""
        if difference is not None:
            gain += f" {format_value(difference.interval, '.3f')}"
            by_sentences, verdict = p_cell(difference.p), difference.verdict
        gain = f"not told apart: {gain}" if verdict else gain
        cells = [claim.model, claim.opponent, claim.text, gain, by_sentences]
        seed_counts = f"{len(model.losses)} and {len(opponent.losses)}"
        rows.append([*cells, p, seed_counts, *([_advice(claim)] if table == CLAIMS else [])])
    header = ["model", "against", "text", "nats below it, 95 %", "p by sentences", "p by seeds"]
    return grid([*header, "seeds", *(["so"] if table == CLAIMS else [])], rows)


def _advice(claim):
    return f"[{claim.advice}](results/{claim.section})"
