"""The claims of docs/results.md: a row each of claims.tsv, computed from records."""

from typing import NamedTuple

from records.cells import figures_of, grid, mean, p_cell, values
from records.rows import expand_runs, read_table
from zoo.lab.comparison import paired
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.significance import LEVEL


class Claim(NamedTuple):
    """A model beside an opponent, each of several seeds."""

    model: str
    runs: tuple[str, ...]
    opponent: str
    opponent_runs: tuple[str, ...]
    text: str  # in words
    split: str
    section: str  # of a page in docs/results/
    advice: str

    @classmethod
    def from_row(cls, row: dict[str, str]) -> "Claim":
        """Reads a row of claims.tsv."""
        runs = {column: expand_runs(row[column]) for column in ("runs", "opponent_runs")}
        return cls(**{**row, **runs})


def claims(about_answers: bool) -> list[Claim]:
    """Reads the claims on answers to questions, or else those on losses."""
    rows = read_table("claims.tsv")
    return [Claim.from_row(row) for row in rows if (":" in row["split"]) is about_answers]


def accuracies() -> str:
    """Makes the table of shares of right answers, percent."""
    rows = []
    for claim in claims(about_answers=True):
        model, opponent = (
            values(runs, claim.split, lambda figures: 100 * figures["accuracy"])
            for runs in (claim.runs, claim.opponent_runs)
        )
        row = [claim.model, claim.opponent, claim.text, mean(model, ".1f"), mean(opponent, ".1f")]
        by_seeds = p_cell(significance.seeds_test(model, opponent))
        seed_counts = f"{len(model)} and {len(opponent)}"
        rows.append([*row, by_seeds, seed_counts, _advice(claim)])
    header = ["model", "against", "questions", "right, %", "the other, %", "p by seeds", "seeds"]
    return grid([*header, "so"], rows)


def losses() -> str:
    """Makes the table of gains in log-perplexity, nats per token."""
    rows = []
    for claim in claims(about_answers=False):
        model, opponent = (
            figures_of(runs, claim.split) for runs in (claim.runs, claim.opponent_runs)
        )
        difference = paired.compare_losses(model, opponent)
        by_seeds = significance.seeds_test([*model.losses], [*opponent.losses])
        gain, by_sentences, tie = f"{opponent.loss - model.loss:.3f}", "", by_seeds >= LEVEL
        if difference is not None:
            gain += " [{:.3f}, {:.3f}]".format(*difference.interval)
            by_sentences, tie = p_cell(difference.p), difference.is_tie or difference.is_undecided
        verdict = "not told apart: " if tie else ""
        cells = [claim.model, claim.opponent, claim.text, verdict + gain, by_sentences]
        seed_counts = f"{len(model.losses)} and {len(opponent.losses)}"
        rows.append([*cells, p_cell(by_seeds), seed_counts, _advice(claim)])
    header = ["model", "against", "text", "nats below it, 95 %", "p by sentences", "p by seeds"]
    return grid([*header, "seeds", "so"], rows)


def _advice(claim) -> str:
    return f"[{claim.advice}](results/{claim.section})"
