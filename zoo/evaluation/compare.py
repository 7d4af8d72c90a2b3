"""Runs side by side, but only where their figures are of the same quantity."""

import json
import math
import pathlib

from zoo.errors import UserError
from zoo.evaluation.passport import COMPARABLE


def read_results(folder: str | pathlib.Path) -> list[dict]:
    """The passports of the perplexities in a run's results.

    Raises:
      UserError: there are none, or a file that cannot be read.
    """
    folder = pathlib.Path(folder)
    passports = []
    for path in sorted((folder / "results").glob("*.json")):
        try:
            passports.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise UserError(f"{path} is not a result of this zoo ({error}): remove it.") from error
    found = [passport for passport in passports if passport.get("kind") == "perplexity"]
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


def columns_of(runs: dict[str, list[dict]]) -> dict[tuple[str, str], dict[str, dict]]:
    """{(split, state policy): {run: passport}}, in the order of the runs' results.

    Where two runs have judged a split under different state policies only, both stand in one
    column, so that the check refuses them rather than letting them stand apart in silence.
    """
    columns: dict[tuple[str, str], dict[str, dict]] = {}
    for name, passports in runs.items():
        for passport in passports:
            key = passport["split"], passport["policies"]["state"]
            columns.setdefault(key, {})[name] = passport
    for split, state in list(columns):
        siblings = [key for key in columns if key[0] == split and key != (split, state)]
        for other in siblings:
            if (split, state) in columns and not columns[split, state].keys() & columns[other]:
                columns[split, state].update(columns.pop(other))
    return columns


def compare(folders: list[str]) -> str:
    """A table of the runs: head, parameters, and log-perplexity (nats per token) and perplexity of
    each split, the lowest log-perplexity on the first split first.

    Raises:
      UserError: a run has no results, or figures of a split have different denominators, policies,
        texts or lexicons; the message names the field and both values.
    """
    runs = {folder: read_results(folder) for folder in folders}
    columns = columns_of(runs)
    for passports in columns.values():
        (first_name, first), *others = passports.items()
        for name, passport in others:
            check_comparable(first, passport, (first_name, name))
    # The columns that all runs have come first: the first of them ranks.
    order = sorted(columns, key=lambda key: -len(columns[key]))
    header = ["run", "head", "parameters"]
    for split, state in order:
        header += [f"{split}, {state}: nats/token", "perplexity"]
    rows = [_row(name, passports, columns, order) for name, passports in runs.items()]
    rows.sort(key=lambda row: row[0])
    notes = [f"{split}, state {state}: {_note(columns[split, state])}" for split, state in order]
    return "\n".join([*_table(header, [row for _, row in rows]), *notes])


def _row(name, passports, columns, order):
    """(log-perplexity that ranks, cells)."""
    cells, rank = [name, passports[0]["head"], f"{passports[0]['parameters']:,}"], float("inf")
    for place, key in enumerate(order):
        passport = columns[key].get(name)
        if passport is None:
            cells += ["-", "-"]
            continue
        figures = passport["figures"]
        log_perplexity, perplexity = (
            float(figures[field]) for field in ("log_perplexity", "perplexity")
        )
        cells += [f"{log_perplexity:.4f}", f"{perplexity:,.2f}"]
        if place == 0 and not math.isnan(log_perplexity):
            rank = log_perplexity
    return rank, cells


def _note(passports):
    passport = next(iter(passports.values()))
    return (
        f"{passport['tokens']:,} tokens: {passport['counts']}; normalised over "
        f"{passport['normalised_over']}"
    )


def _table(header, rows):
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        yield "  ".join(left + right)
