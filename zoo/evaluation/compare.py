"""Runs side by side, but only where their figures are of the same quantity."""

import json
import math
import pathlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from zoo.errors import UserError
from zoo.evaluation.passport import COMPARABLE


class Column(NamedTuple):
    """What stands in one column of the table.

    split: the name of the text. state: the policy. digest: the start of the text's hash where the
    text was given by path, since one name may stand for several texts there; else "".
    lexicon: the start of the hash of the words. over: what probabilities are normalised over.
    constrained: "constrained" if a grammar forbade words, else "".
    """

    split: str
    state: str
    digest: str
    lexicon: str
    over: str
    constrained: str

    @classmethod
    def of(cls, passport: dict, path: pathlib.Path) -> "Column":
        """The column of a result; whether it was constrained is in the name of its file alone."""
        split = passport["split"]
        digest = passport["data"]["sha256"][:8] if ":" in split else ""
        constrained = "constrained" if re.search(r"[.-]constrained\.json$", path.name) else ""
        return cls(
            split,
            passport["policies"]["state"],
            digest,
            passport["lexicon"]["words_hash"][:8],
            passport["normalised_over"],
            constrained,
        )

    def __str__(self):
        digest = f" [{self.digest}]" if self.digest else ""
        return ", ".join(filter(None, (f"{self.split}{digest}", self.state, self.constrained)))


def names_of(columns: Iterable[Column]) -> dict[Column, str]:
    """A name for each column, with its lexicon, and what it is normalised over, where another one
    of the same text and policy has others."""
    columns, names = [*columns], {}
    for column in columns:
        alike = [other for other in columns if str(other) == str(column)]
        names[column] = str(column)
        if len({other.lexicon for other in alike}) > 1:
            names[column] += f", lexicon {column.lexicon}"
            alike = [other for other in alike if other.lexicon == column.lexicon]
        if len({other.over for other in alike}) > 1:
            names[column] += f", over {column.over}"
    return names


def read_results(folder: str | pathlib.Path) -> dict[Column, dict]:
    """The passports of the perplexities in a run's results, in the order of their file names.

    Raises:
      UserError: there are none, a file cannot be read, or two are of one text, state and lexicon.
    """
    folder = pathlib.Path(folder)
    found, names = {}, {}
    for path in sorted((folder / "results").glob("*.json")):
        try:
            passport = json.loads(path.read_text(encoding="utf-8"))
            if passport["kind"] != "perplexity":
                continue
            column = Column.of(passport, path)
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} is not a result of this zoo ({error!r}): remove it."
            ) from error
        if column in found:
            raise UserError(
                f"{folder} has two results of {column}: {names[column]} and {path.name}; take the "
                "one that is not meant out of its results."
            )
        found[column], names[column] = passport, path.name
    if not found:
        raise UserError(
            f"{folder} has no results: python evaluate.py --workdir {folder} makes them."
        )
    return found


def check_comparable(first: dict, second: dict, names: tuple[str, str]):
    """UserError naming the first field in which two passports are not of the same quantity.

    Args:
      names: what to call the two runs.
    """
    old, new = _comparable(first), _comparable(second)
    for field in old | new:
        if old.get(field) != new.get(field):
            raise UserError(
                f"{names[0]} and {names[1]} cannot be ranked on {first['split']}, for {field} "
                f"differs: {old.get(field)!r} against {new.get(field)!r}; evaluate both alike."
            )


def _comparable(passport):
    """{field: value} of `COMPARABLE`, each policy a field of its own."""
    values = {}
    for field in COMPARABLE:
        value = passport
        for name in field.split("."):
            value = value[name]
        nested = value if isinstance(value, dict) else {}
        values.update({f"{field}.{name}": item for name, item in nested.items()})
        if not nested:
            values[field] = value
    return values


def columns_of(runs: dict[str, dict[Column, dict]]) -> dict[Column, dict[str, dict]]:
    """{column: {run: passport}}, in the order of the runs' results.

    Runs that were judged on one split, but never alike (under other state policies, on other texts
    of one name, over other words), stand in one column, so that the check refuses them rather than
    letting them stand apart in silence.
    """
    columns: dict[Column, dict[str, dict]] = {}
    for name, results in runs.items():
        for column, passport in results.items():
            columns.setdefault(column, {})[name] = passport
    for column in list(columns):
        for other in [key for key in columns if key.split == column.split and key != column]:
            if column in columns and not _meet(columns, column, other):
                columns[column].update(columns.pop(other))
    return columns


def _meet(columns, one, other):
    """Whether a run of one column and a run of the other stand together in some column."""
    return any(
        columns[one].keys() & there.keys() and columns[other].keys() & there.keys()
        for column, there in columns.items()
        if column.split == one.split
    )


def compare(folders: list[str]) -> str:
    """A table of the runs: head, parameters, and log-perplexity (nats per token) and perplexity of
    each split, the lowest log-perplexity on the first split first.

    Below it stand what each column counts, the priors that had seen its text, and the runs whose
    columns come from different checkpoints, which the table marks with a star.

    Raises:
      UserError: a run has no results or two of the same, or figures of a split have different
        denominators, policies, texts or lexicons; the message names the field and both values.
    """
    runs = {folder: read_results(folder) for folder in folders}
    columns = columns_of(runs)
    for passports in columns.values():
        (first_name, first), *others = passports.items()
        for name, passport in others:
            check_comparable(first, passport, (first_name, name))
    # The columns that all runs have come first: the first of them ranks.
    order = sorted(columns, key=lambda column: -len(columns[column]))
    mixed = {
        name: steps for name, results in runs.items() if len(steps := _checkpoints(results)) > 1
    }
    names = names_of(order)
    header = ["run", "head", "parameters"]
    for column in order:
        header += [f"{names[column]}: nats/token", "perplexity"]
    rows = []
    for name, results in runs.items():
        cells = _cells(columns, order, name)
        any_result = next(iter(results.values()))
        label = f"{name} *" if name in mixed else name
        row = [label, any_result["head"], f"{any_result['parameters']:,}", *cells]
        rows.append((_rank(columns[order[0]].get(name)), row))
    rows.sort(key=lambda row: row[0])
    lines = [*_table(header, [row for _, row in rows]), f"ranked by {names[order[0]]}"]
    for column in order:
        lines += _notes(names[column], columns[column])
    for name, steps in mixed.items():
        said = "; ".join(f"{columns} of step {step}" for step, columns in steps.items())
        lines.append(f"* {name} was judged at different checkpoints, {said}: evaluate it again.")
    return "\n".join(lines)


def _rank(passport) -> float:
    """The log-perplexity that ranks a run; infinite without one, or if it is not a number."""
    value = float(passport["figures"]["log_perplexity"]) if passport else math.inf
    return math.inf if math.isnan(value) else value


def _cells(columns, order, name):
    """Log-perplexity and perplexity of a run in each column, "-" where it has none."""
    cells = []
    for column in order:
        figures = columns[column].get(name, {}).get("figures")
        cells += (
            [f"{float(figures['log_perplexity']):.4f}", f"{float(figures['perplexity']):,.2f}"]
            if figures
            else ["-", "-"]
        )
    return cells


def _checkpoints(results):
    """{training step: the columns that are of it} of a run."""
    names, steps = names_of(results), {}
    for column, passport in results.items():
        steps.setdefault(passport.get("checkpoint"), []).append(names[column])
    return {step: " and ".join(columns) for step, columns in steps.items()}


def _notes(name, passports):
    """What a column counts, and which runs' priors had seen its text."""
    passport = next(iter(passports.values()))
    yield (
        f"{name}: {passport['tokens']:,} tokens: {passport['counts']}; normalised over "
        f"{passport['normalised_over']}"
    )
    runs_by_priors = {}
    for run, passport in passports.items():
        saw = passport.get("priors_saw_this_text")
        said = "not recorded" if saw is None else ", ".join(saw) or "none"
        runs_by_priors.setdefault(said, []).append(run)
    for said, of_runs in runs_by_priors.items():
        yield f"  priors that saw this text: {said} ({', '.join(of_runs)})"


def _table(header, rows):
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        yield "  ".join(left + right)
