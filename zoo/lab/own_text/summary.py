"""The comparison of trials: a table, a sentence and JSON.

Differences are tested as `zoo compare` tests them (`zoo.lab.comparison.paired`): a head is a
tie with the head of the lowest perplexity unless exchanged sentences tell the two apart, and
undecided where sentences do and several seeds do not.
"""

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoo.base import strict_json
from zoo.errors import UserError
from zoo.lab.comparison import learning_curves, paired
from zoo.lab.comparison.comparison import Group, read_losses
from zoo.lab.comparison.paired import GroupLosses
from zoo.lab.evaluation.figures import is_validation
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.evaluation.results import check_comparable, read_results, recipe_of
from zoo.lab.own_text.plan import Plan
from zoo.lab.runs import atomic_writes
from zoo.lab.table import COUNT, PERPLEXITY, Column, Table

NAME = "comparison"
# Heads count as unequally trained if one took more than this many times the minutes asked for, or
# the minutes of another.
UNEQUAL = 1.5
# Sentences of the judged text below which a note says that they are few.
FEW_SENTENCES = 50
# A head whose best validation is above this share of the loss of a uniform guess learned nothing.
AT_START = 0.95
# A curve still falls where the last fifth of its steps lowered it by more nats.
FALLING = 0.01
# {how a head stands beside the lowest: how one and several such heads are told}
_VERDICTS = {
    "a tie": ("is a tie with it", "are ties with it"),
    "undecided": (
        "is undecided, for seeds differ as much",
        "are undecided, for seeds differ as much",
    ),
    "worse": ("is worse", "are worse"),
}


class CurvePoint(NamedTuple):
    """The validations of a head's runs at one step."""

    step: int
    minutes: float
    losses: tuple[float, ...]  # validation log-perplexity of each run, nats per token


class HeadRow(NamedTuple):
    """The figures of a head: its losses, its cost and its learning curve."""

    runs: GroupLosses  # the seeds on the judged text
    parameters: int
    minutes: float
    steps: int
    epochs: float  # of training, a part of one below 1
    bytes: int | None  # memory of a step; None if not known
    rate: float
    # the validations; () for a head whose validations are over spellings
    curve: tuple[CurvePoint, ...] = ()
    # from the lowest, None for the lowest itself or without finite figures
    difference: paired.Difference | None = None

    @property
    def fall(self) -> float:
        """Nats by which the last fifth of the steps lowered the validation; 0 without a curve."""
        means = {point.step: float(np.mean(point.losses)) for point in self.curve}
        before = [step for step in means if step <= 0.8 * max(means)]
        return means[max(before)] - means[max(means)] if before else 0.0

    @property
    def perplexity(self) -> float:
        """exp of the mean log-perplexity."""
        return perplexity_of(self.runs.loss)

    @property
    def step_seconds(self) -> float:
        """Mean seconds of a training step."""
        return 60 * self.minutes / self.steps

    @property
    def verdict(self) -> str:
        """How the head stands beside the lowest, a key of `_VERDICTS`."""
        return (self.difference and self.difference.verdict) or "worse"


class Summary(NamedTuple):
    """The comparison of all heads, the lowest loss first."""

    rows: tuple[HeadRow, ...]
    split: str
    tokens: int
    notes: tuple[str, ...]
    failed: Mapping[str, str]
    start: float  # log V, the loss of a uniform guess, nats

    def text(self) -> str:
        """Returns the table, the notes and the sentence as text."""
        lines = [*_table_lines(self), *self.notes]
        lines += [f"{name} is left out: {reason}" for name, reason in self.failed.items()]
        return "\n".join([*lines, "", summary_sentence(self)])


def summarise(
    folders: Mapping[str, Sequence[pathlib.Path]],
    split: str,
    plan: Plan,
    failed: Mapping[str, str],
    start: float,
) -> Summary:
    """Summarises the runs of trials, {head: folders of its seeds, [] for a failed head}; raises
    UserError if no head has a run."""
    passports: dict = {
        folder: next(columns[column] for column in columns if column.split == split)
        for folder, columns in read_results(itertools.chain(*folders.values())).items()
    }
    if not passports:
        raise UserError("no head could be trained: see the lines above.")
    first_folder, first_passport = next(iter(passports.items()))
    for folder, passport in passports.items():
        check_comparable(first_passport, passport, (first_folder, folder))
    heads = [Group(name, 0, tuple(seeds)) for name, seeds in folders.items()]  # type: ignore[arg-type]
    groups = sorted(read_losses(heads, passports).values(), key=lambda group: group.loss)
    lowest, *higher = groups
    difference = {group: paired.compare_losses(lowest, group) for group in higher}
    rows = [
        _head_row(group, folders[group.name], passports, plan, difference.get(group))
        for group in groups
    ]
    notes = [*_judgement_notes(rows, passports), *_time_notes(rows, plan.budget.minutes)]
    notes += _rate_notes(rows, plan)
    return Summary(tuple(rows), split, first_passport.tokens, tuple(notes), failed, start)


def _head_row(group, folders, passports, plan, difference) -> HeadRow:
    """Reads the curves and the cost of a head's runs, and puts its figures into a row."""
    fields = learning_curves.FIELDS["minutes"]
    curves = [
        {line["step"]: line for line in learning_curves.read_validations(str(folder), fields)}
        for folder in folders
    ]
    head_plan, last = plan.heads[group.name], [max(curve) for curve in curves]
    passport = passports[folders[0]]
    recipe = recipe_of(folders[0])
    seconds = [curve[step]["seconds"] for curve, step in zip(curves, last, strict=True)]
    points = [
        CurvePoint(
            step,
            float(np.mean([curve[step]["seconds"] for curve in curves])) / 60,
            tuple(float(curve[step]["validation_log_perplexity"]) for curve in curves),
        )
        for step in sorted(set(curves[0]).intersection(*curves[1:]))
    ]
    return HeadRow(
        group,
        passport.parameters,
        float(np.mean(seconds)) / 60,
        last[0],
        last[0] / head_plan.epoch_steps,
        head_plan.bytes,
        recipe["training"]["optimizer"]["learning_rate"],
        () if passport.all_changes else tuple(points),
        difference,
    )


def _judgement_notes(rows, passports):
    """Yields notes where the judgement of the heads is weak: seeds, unseen text, size."""
    if min(len(row.runs.losses) for row in rows) == 1:
        yield "one seed does not show the noise of training"
    for folder, passport in passports.items():
        if passport.leak:
            yield f"{folder.name} is not judged on unseen text: {passport.leak}"
    if is_validation(next(iter(passports.values())).split):
        yield "without a test text, these are figures of the text that chose the checkpoints"
    statistics = rows[0].runs.statistics
    if statistics and len(statistics[0]) < FEW_SENTENCES:
        count = len(statistics[0])
        yield f"{count} sentences are few to judge by: others may rank the heads otherwise"


def _rate_notes(rows, plan):
    """Yields a note where a head took the least or the greatest of the rates that were tried."""
    tried = plan.budget.rates
    if len(tried) < 2:
        return
    low, high = min(tried), max(tried)
    ends = ("lowest", low, (low / 3, *tried)), ("highest", high, (*tried, high * 3))
    for end, factor, rates in ends:
        names = [row.runs.name for row in rows if plan.heads[row.runs.name].rate == factor]
        if names:
            listed = ",".join(f"{rate:g}" for rate in rates)
            yield (
                f"{_join_names(names)} took the {end} learning rate that was tried: --rates "
                f"{listed} in another --output tries more"
            )


def _time_notes(rows, minutes):
    """Yields a note if a head trained for more than `UNEQUAL` times the minutes asked for."""
    if minutes is None or max(row.minutes for row in rows) <= UNEQUAL * minutes:
        return
    yield (
        f"not equal minutes: {_format_minutes(rows)}, of {minutes:g}: the machine had other work "
        "while steps were timed or trained; --steps gives each head as many steps"
    )


def _table_lines(summary):
    """Yields the lines of the table of heads; ranges are of perplexities."""
    columns = [Column("head"), Column("perplexity", PERPLEXITY), Column("95 %", PERPLEXITY)]
    columns += [Column("seeds", PERPLEXITY), Column("parameters", COUNT), Column("minutes", ".2f")]
    columns += [Column("ms/step", ".1f"), Column("MB", ",.0f"), Column("beside the lowest")]
    rows = []
    for row in summary.rows:
        interval, spread = (
            tuple(map(perplexity_of, ends)) for ends in (row.runs.interval, row.runs.loss_range)
        )
        rows.append(
            [
                row.runs.name,
                row.perplexity,
                interval,
                spread if len(row.runs.losses) > 1 else "1",
                row.parameters,
                row.minutes,
                1000 * row.step_seconds,
                None if row.bytes is None else row.bytes / 1e6,
                _format_verdict(row, summary.rows[0]),
            ]
        )
    yield f"{summary.split}: {summary.tokens:,} tokens, perplexity"
    yield from Table(columns, rows).text()


def _format_verdict(row, lowest):
    """Describes how a head stands beside the lowest: nats above it, and a tie if it is one."""
    if row is lowest:
        return "the lowest"
    nats = f"+{row.runs.loss - lowest.runs.loss:.4f} nats"
    return nats if row.verdict == "worse" else f"{nats}, {row.verdict}"


def summary_sentence(summary: Summary) -> str:
    """Tells in one sentence which head to take, which are ties with it, and which are worse."""
    lowest, *higher = rows = summary.rows
    budgets = zip(*((row.minutes, row.steps) for row in rows), strict=True)
    text = f"{lowest.runs.name}: perplexity {lowest.perplexity:,.2f} on {summary.split}"
    text += _describe_epochs(lowest)
    untrained = _hardly_trained(summary)
    if untrained:
        have = "has" if len(untrained) == 1 else "have"
        text = (
            f"No winner yet, for {_join_names(untrained)} {have} hardly left the loss of a uniform "
            f"guess ({summary.start:.2f} nats): {text}"
        )
    elif all(max(amounts) > UNEQUAL * min(amounts) for amounts in budgets):
        minutes = _format_minutes(rows)
        text = f"After unequal training, which may decide ({minutes} minutes), take {text}"
    else:
        text = f"Take {text}"
    if higher:
        text += ", the lowest"
    for verdict, ends in _VERDICTS.items():
        heads = [_describe_head(row, lowest) for row in higher if row.verdict == verdict]
        if heads:
            text += f"; {_join_names(heads)} {ends[len(heads) > 1]}"
    return f"{text}.{_falling_note(summary.rows)}"


def _format_minutes(rows):
    """Formats the minutes of training of each head."""
    return ", ".join(f"{row.runs.name} {row.minutes:.2f}" for row in rows)


def _hardly_trained(summary):
    """Returns the heads whose lowest validation is above `AT_START` of a uniform guess's loss."""
    return [
        row.runs.name
        for row in summary.rows
        if row.curve
        and min(np.mean(point.losses) for point in row.curve) > AT_START * summary.start
    ]


def _falling_note(rows):
    """Describes curves whose `fall` at the end is above `FALLING`; "" if there are none."""
    descriptions = [
        f"{row.runs.name} by {row.fall:.2f} nats (step {row.steps:,}{_describe_epochs(row)})"
        for row in rows
        if row.fall > FALLING
    ]
    if not descriptions:
        return ""
    return (
        f" Validation still fell in the last fifth of training, of {_join_names(descriptions)}: "
        "after longer training the order may be another."
    )


def _describe_epochs(row):
    """Tells how many epochs a head was trained for: " after 0.14 epochs"."""
    epochs = f"{row.epochs:.2g}" if row.epochs < 10 else f"{row.epochs:,.0f}"
    return f" after {epochs} epoch{'' if epochs == '1' else 's'}"


def _describe_head(row, lowest):
    """Names a head with its perplexity, and its share of the lowest's parameters unless it is
    worse."""
    share = row.parameters / lowest.parameters
    figures = f"{row.perplexity:,.2f}"
    if row.verdict != "worse" and abs(share - 1) >= 0.1:
        figures += f", {share:.2f} times the parameters"
    return f"{row.runs.name} ({figures})"


def _join_names(names: Sequence[str]) -> str:
    """Joins names: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def summary_json(summary: Summary) -> dict:
    """Returns the summary as JSON, with every figure of its rows."""
    return {
        "sentence": summary_sentence(summary),
        "split": summary.split,
        "tokens": summary.tokens,
        "notes": [*summary.notes],
        "failed": {**summary.failed},
        "heads": [
            {
                "head": row.runs.name,
                "log_perplexity": row.runs.loss,
                "perplexity": row.perplexity,
                "interval": [*row.runs.interval],
                "log_perplexity_of_seeds": [*row.runs.losses],
                "parameters": row.parameters,
                "steps": row.steps,
                "epochs": row.epochs,
                "learning_rate": row.rate,
                "minutes": row.minutes,
                "step_seconds": row.step_seconds,
                "step_bytes": row.bytes,
                "tie": row.verdict == "a tie",
                "difference": row.difference and row.difference._asdict(),
                "validations": [point._asdict() for point in row.curve],
            }
            for row in summary.rows
        ],
    }


def write_summary(folder: pathlib.Path, summary: Summary):
    """Writes comparison.txt and .json into the folder of the trials."""
    json_text = strict_json.dumps(summary_json(summary), indent=2, ensure_ascii=False)
    for suffix, text in ((".txt", summary.text()), (".json", json_text)):
        atomic_writes.write_text(folder / f"{NAME}{suffix}", f"{text}\n")
