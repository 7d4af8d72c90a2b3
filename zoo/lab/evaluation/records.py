"""Records of runs: the recipes and results of many runs in one file, a run a line.

    {"run": "micro_softmax_0", "experiment": {...}, "results": {"test.sentences": {...}, ...}}

Results are passports (`zoo.lab.evaluation.passport`) by the names of their files in a run's folder.
Kept scores (`zoo.lab.evaluation.item_scores`) stand beside NAME.jsonl in NAME.npz, as arrays
RUN/RESULT/ARRAY. A command that reads the results of runs takes NAME.jsonl for all the runs of a
record, and NAME.jsonl:RUN for one of them, in the place of a run's folder.
"""

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

from zoo.base import regular_files, strict_json
from zoo.base.arrays import array_files
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.evaluation import item_scores
from zoo.lab.runs import atomic_writes, workdir

_NAME = re.compile(r"(.+\.jsonl)(?::(.+))?")


@dataclasses.dataclass(frozen=True)
class Record:
    """A run of a record."""

    run: str
    experiment: dict
    results: dict[str, dict]  # passports as JSON
    # lines of its metrics.jsonl, its learning curve; () if they were not kept
    validations: tuple[dict, ...] = ()


def is_record(path: str | pathlib.Path) -> bool:
    """Whether a path names a record, or a run of one, rather than a run's folder."""
    return _NAME.fullmatch(str(path)) is not None and not os.path.isdir(path)


def expand(paths: Iterable[str]) -> list[str]:
    """Replaces each NAME.jsonl by the names of its runs, NAME.jsonl:RUN."""
    names = []
    for path in paths:
        if is_record(path) and str(path).endswith(".jsonl"):
            names += [f"{path}:{record.run}" for record in read(pathlib.Path(path))]
        else:
            names.append(path)
    return names


def file_and_run(path: str | pathlib.Path) -> tuple[pathlib.Path, str]:
    """Splits NAME.jsonl:RUN into the file and the run's name."""
    match = _NAME.fullmatch(str(path))
    if match is None or match[2] is None:
        raise UserError(f"{path} has several runs: name one of them, as in {path}:RUN.")
    return pathlib.Path(match[1]), match[2]


def record_of(path: str | pathlib.Path) -> Record:
    """Reads the run NAME.jsonl:RUN."""
    file, run = file_and_run(path)
    records = {record.run: record for record in read(file)}
    if run not in records:
        raise UserError(f"{file} has no run {run}: name one of {', '.join(records)}.")
    return records[run]


def experiment_of(path: str | pathlib.Path) -> Experiment:
    """Reads the recipe of the run NAME.jsonl:RUN, to train it again."""
    return workdir.parse_experiment(record_of(path).experiment, path, path)


def read(file: pathlib.Path) -> list[Record]:
    """Reads all runs of a record."""
    try:
        # Only line feeds end a line: JSON may hold U+2028 and its like as they are.
        lines = regular_files.read_text(file).removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read ({error}): give a record of runs.") from error
    records: dict[str, Record] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = strict_json.parse(Record, strict_json.loads(line))
        except ValueError as error:
            raise UserError(
                f"{file}, line {number} is not a run of a record ({error}): put back a copy of it."
            ) from error
        if record.run in records:
            raise UserError(f"{file}, line {number}: {record.run} stands there twice: remove it.")
        records[record.run] = record
    return [*records.values()]


def scores_file(file: pathlib.Path) -> pathlib.Path:
    """Returns the file of a record's kept scores, NAME.npz for NAME.jsonl."""
    return file.with_suffix(".npz")


def write(
    file: pathlib.Path,
    records: Sequence[Record],
    scores: Mapping[str, Mapping[str, item_scores.Arrays]],
):
    """Adds runs to a record, made if it does not exist; replaces runs of the same names."""
    runs = {record.run for record in records}
    earlier = [record for record in read(file) if record.run not in runs] if file.exists() else []
    merged = sorted([*earlier, *records], key=lambda record: record.run)
    text = ""
    for record in merged:
        text += strict_json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
    arrays = {}
    if scores_file(file).exists():
        try:
            arrays = array_files.read_arrays(scores_file(file), lambda name: "/" in name)
        except (OSError, ValueError) as error:
            raise UserError(
                f"{scores_file(file)} cannot be read ({error}): put back a copy of it."
            ) from error
        arrays = {name: array for name, array in arrays.items() if name.split("/")[0] not in runs}
    for run, results in scores.items():
        for result, result_arrays in results.items():
            arrays |= {f"{run}/{result}/{name}": array for name, array in result_arrays.items()}
    if arrays:
        atomic_writes.write_whole(scores_file(file), lambda path: array_files.write(path, arrays))
    atomic_writes.write_text(file, text)
