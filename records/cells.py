"""Figures of kept runs as cells of a table in Markdown, with a line on where they come from."""

import datetime
import functools
import pathlib
import statistics

from zoo.errors import UserError
from zoo.evaluation import records
from zoo.evaluation.results import learns
from zoo.runs import output_files

FOLDER = pathlib.Path(__file__).parent


@functools.cache
def every_run() -> dict[str, tuple[pathlib.Path, records.Record]]:
    """Reads all records: {run: (its file, its record)}."""
    return {
        record.run: (file, record)
        for file in sorted(FOLDER.glob("*.jsonl"))
        for record in records.read(file)
    }


def passports(run: str, learning: str = "") -> dict[str, dict]:
    """Returns {split: passport} of a run, over the words that it was trained on.

    Args:
      run: its name in the records.
      learning: how it learned from the text that it was judged on, as `learns` tells it.
    """
    found = every_run()[run][1].results.values()
    return {
        passport["split"]: passport
        for passport in found
        if not passport["spread_unknown"] and learns(passport) == learning
    }


def loss(run: str, split: str) -> float:
    """Returns the nats per token of a run.

    Args:
      run: its name in the records.
      split: the name of the split that it was judged on.
    """
    return passports(run)[split]["figures"]["log_perplexity"]


def mean(values: list[float], form: str) -> str:
    """Formats the mean of the seeds, with the least and the greatest in brackets if they differ.

    Args:
      values: of the seeds.
      form: of the numbers, such as ".4f".
    """
    text = format(statistics.fmean(values), form)
    if min(values) < max(values):
        text += f" ({min(values):{form}}–{max(values):{form}})"
    return text


def origin(names: list[str], test: str = "test", spread: bool = True) -> str:
    """Returns a line on where figures come from.

    Args:
      names: of runs.
      test: the split whose passports are asked.
      spread: whether the line explains the brackets, if there are several seeds.
    """
    found = [passports(run)[test] for run in names]
    files = ", ".join(sorted({f"records/{every_run()[run][0].name}" for run in names}))
    seeds = sorted({passport["training"]["seed"] for passport in found})
    revisions = sorted({passport["training"]["made_with"]["revision"][:7] for passport in found})
    machines = {
        f"{passport['machine']['processor']}, {passport['machine']['cores']} cores"
        for passport in found
    }
    dates = sorted({passport["date"][:10] for passport in found})
    brackets = " In brackets the least and the greatest of the seeds."
    return (
        f"From the passports in {files}: seed {', '.join(map(str, seeds))}; revision "
        f"{', '.join(revisions)}; {', '.join(sorted(machines))}; {', '.join(dates)}."
        + brackets
        * (spread and len(seeds) > 1)
    )


def provenance() -> dict:
    """Returns by which code, where and when figures are computed now.

    Raises:
      UserError: by code that was not committed.
    """
    revision = output_files.revision()
    if (revision or "dirty").endswith("dirty"):
        raise UserError("the figures would be of code that was not committed: commit it first.")
    return {
        "revision": revision,
        "versions": output_files.versions(),
        "machine": output_files.machine(),
        "date": datetime.date.today().isoformat(),
    }


def provenance_line(kept: dict) -> str:
    """Returns a line on what `provenance` told of figures.

    Args:
      kept: the content of their file.
    """
    machine = kept["machine"]
    return (
        f"revision {kept['revision'][:7]}; {machine['processor']}, {machine['cores']} cores; "
        f"{kept['date']}."
    )


def markdown(
    header: list[str],
    rows: list[list[str]],
    runs: list[str],
    test: str = "test",
    spread: bool = True,
) -> str:
    """Formats a table and the line on its origin; see `origin`.

    Args:
      header: of the columns.
      rows: their cells.
      runs: the names of the runs.
      test: see `origin`.
      spread: see `origin`.
    """
    return f"{grid(header, rows)}\n{origin(runs, test, spread)}"


def grid(header: list[str], rows: list[list[str]]) -> str:
    """Formats the lines of a table.

    Args:
      header: of the columns.
      rows: their cells.
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
