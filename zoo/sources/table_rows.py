"""Rows of tables: CSV and TSV, whose first line names the columns, JSON, and data sets.

CSV and TSV are read by RFC 4180, as pandas and R write them: cells may be in quotation marks, and
quotation marks within such a cell are doubled. A quotation mark inside any other cell is text, and
so is one alone between tabs, as in a treebank with a word a row. A cell between tabs ends on its
line.
"""

import csv
import io
import json
import pathlib
import re
import sys
from collections.abc import Iterator

from zoo import lazy, strict_json
from zoo.errors import UserError, shortened
from zoo.sources import files

# A lone quotation mark, a cell in quotation marks, or any other cell, with the tab behind it.
_CELL = re.compile(r'("|"((?:[^"]|"")*+)"|[^\t]*)\t')


def cells(line: str, where: str) -> list[str]:
    """Splits a line at its tabs and unquotes its cells; `where` names the line in the error."""
    if '"' not in line:
        return line.split("\t")
    found = []
    for cell, quoted in _CELL.findall(line + "\t"):
        if cell == f'"{quoted}"':
            cell = quoted.replace('""', '"')
        elif cell.startswith('"') and cell.count('"') % 2 and cell.strip('"'):
            raise UserError(
                f"{where}: {shortened(cell, 80)} begins with a quotation mark that is never "
                "closed: close it on its line, or quote the cell and double the quotation marks "
                "in it."
            )
        found.append(cell)
    return found


def header(text: str) -> list[str]:
    """Returns the cells of a text's first line between tabs, or [] if they cannot be read."""
    try:
        return cells(text.partition("\n")[0], "line 1")
    except UserError:
        return []


def lines(text: str, path: pathlib.Path | str) -> Iterator[tuple[int, list[str]]]:
    """Yields (number from 1, cells) of each line of a text with tabs; a blank line has one cell."""
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        yield number, cells(line, f"{path}, line {number}")


def rows(
    text: str, path: pathlib.Path | str, delimiter: str = ",", full: bool = False
) -> tuple[list[str], list[tuple[int, dict]]]:
    """Returns (names of the columns, (line, {name: cell}) of each row that is not blank).

    The dict of a row that ends early lacks the missing cells; with `full`, it is an error.
    """
    names: list[str] = []
    records = []
    for number, found in lines(text, path) if delimiter == "\t" else _of_csv(text, path):
        if len(found) < 2 and not "".join(found).strip():
            continue
        where = f"{path}, line {number}"
        if not names:
            names = found
            if len({*names}) < len(names):
                raise UserError(f"{where}: two columns have the same name: rename one.")
        elif len(found) > len(names) or (full and len(found) < len(names)):
            mend = "quote cells that have commas" if delimiter == "," else "leave tabs out of cells"
            mend = mend if len(found) > len(names) else "give each cell"
            raise UserError(
                f"{where}: {len(found)} cells in a table of {len(names)}: {mend}, or name all "
                "columns in line 1."
            )
        else:
            records.append((number, dict(zip(names, found, strict=False))))
    return names, records


def _of_csv(text, path) -> Iterator[tuple[int, list[str]]]:
    """Yields (the number of its last line, cells) of each row between commas."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    # Strict: otherwise an unclosed quotation mark turns all further rows into one cell.
    read = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for found in read:
            yield read.line_num, found
    except csv.Error as error:
        raise UserError(
            f"{path}, line {read.line_num}: a quotation mark that is never closed, or not "
            f"followed by ',' ({error}): quote the cell and double the quotation marks in it."
        ) from error


# ---- rows of data sets read by the library `datasets`: from a hub, saved to disk, or in Parquet


def dataset_rows(path, *arguments, **options) -> Iterator[dict]:
    """Yields the rows of a data set, loaded by `datasets.load_dataset` or `load_from_disk`."""
    with lazy.extra():
        import datasets  # takes a second to import

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # its errors become ours
    try:
        if arguments:
            yield from datasets.load_dataset(*arguments, **options)
        else:
            yield from datasets.load_from_disk(str(path))
    except Exception as error:  # the library raises many kinds of errors
        message = str(error).strip() or type(error).__name__
        raise UserError(f"{path} cannot be read by datasets: {message.splitlines()[0]}") from error


def hub_name(path: str) -> list[str]:
    """Splits 'hub:NAME:SPLIT' or 'hub:NAME:CONFIGURATION:SPLIT' into the parts after "hub"."""
    parts = path.split(":")[1:]
    if len(parts) not in (2, 3) or not all(parts):
        raise UserError(f"{path} should read hub:NAME:SPLIT or hub:NAME:CONFIGURATION:SPLIT.")
    return parts


# ------ rows of JSON: a sequence of objects, on a line each or not, or one list of objects

_BLANK = re.compile(r"[ \t\r\n]*")


def json_rows(text: str, path: pathlib.Path) -> tuple[list[str], list[dict]]:
    """Returns (the names of all objects, the objects); an object may lack names of others."""
    values = list(_values(text, path))
    if len(values) == 1 and isinstance(values[0], list):
        (values,) = values
    for number, row in enumerate(values, 1):
        if not isinstance(row, dict):
            raise UserError(
                f"{path}, value {number}: {_KINDS.get(type(row), 'a number')} where an object with "
                'the text should be: write {"text": "..."}, or set data.column.'
            )
    return [*dict.fromkeys(name for row in values for name in row)], values


_KINDS = {str: "a string", list: "a list", bool: "true or false", type(None): "null"}


def _after_blank(text: str, begin: int) -> int:
    """Returns the position after the blanks that begin at a position."""
    match = _BLANK.match(text, begin)
    return match.end() if match else begin


def _values(text, path) -> Iterator:
    """Yields the JSON values of a text."""
    decoder = json.JSONDecoder(parse_int=strict_json.whole_number)
    begin = _after_blank(text, 0)
    while begin < len(text):
        try:
            value, begin = decoder.raw_decode(text, begin)
        except RecursionError as error:
            line = text.count("\n", 0, begin) + 1
            raise UserError(
                f"{path}, line {line}: JSON that is nested too deeply: correct it."
            ) from error
        except ValueError as error:  # also for integers that are too long for Python to parse
            line = text.count("\n", 0, getattr(error, "pos", begin)) + 1
            what = getattr(error, "msg", error)
            raise UserError(f"{path}, line {line}: not JSON ({what}): correct it.") from error
        yield value
        begin = _after_blank(text, begin)


# -------------------- tables of facts: a subject a line, a relation a column, between tabs


def read_table(path: str) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Reads (relations, {subject: {relation: value}}) from a table.

    The first line names the column of subjects and then each relation; cells without a value are
    empty.
    """
    file = files.find(path)
    lines = lines(files.read_text(file), file)
    _, *relations = map(str.strip, next(lines)[1])
    if not all(relations) or len(set(relations)) < max(1, len(relations)):
        raise UserError(
            f"{file}, line 1: name the column of subjects and then each relation once, between "
            "tabs."
        )
    facts = {}
    for number, cells in lines:
        subject, *values = map(str.strip, cells)
        if not any((subject, *values)):
            continue
        if len(values) != len(relations) or any(len(c.split()) > 1 for c in (subject, *values)):
            raise UserError(
                f"{file}, line {number}: write a subject and {len(relations)} values between "
                "tabs, a word each or nothing."
            )
        if not subject or subject in facts:
            raise UserError(
                f"{file}, line {number}: write one subject a line, and each subject once."
            )
        facts[subject] = {r: v for r, v in zip(relations, values, strict=True) if v}
    if not facts:
        raise UserError(f"{file} has no facts: give a line a subject.")
    return tuple(relations), facts
