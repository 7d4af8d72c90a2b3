"""Rows of CSV and TSV tables, whose first line names the columns.

Cells may be in quotation marks, which are doubled within it (RFC 4180), as spreadsheets, pandas and
R write them. In TSV, whose lines are rows, a quotation mark that does not open and close a whole
cell is text: a token of its own, or the beginning of "so", he said.
"""

import csv
import io
import pathlib
import re
import sys

from zoo.errors import UserError

_CELL = re.compile(r'"((?:[^"]|"")*)"(?=\t|$)|([^\t]*)')


def tab_cells(line: str) -> list[str]:
    """Returns the cells of a row of a TSV table."""
    found, end = [], -1
    while end < len(line):
        match = _CELL.match(line, end + 1)
        assert match  # the second form matches anything
        quoted, plain = match.groups()
        found.append(plain if quoted is None else quoted.replace('""', '"'))
        end = match.end()
    return found


def rows(text: str, path: pathlib.Path, delimiter: str = ",") -> tuple[list[str], list[dict]]:
    """Returns (names of the columns, {name: cell} for each row that is not blank).

    The dict of a row that ends early lacks the missing cells. The length of a cell is not limited.
    """
    names, records = None, []
    for number, cells in _of_tabs(text) if delimiter == "\t" else _of_csv(text, path, delimiter):
        if names is None:
            names = cells
            if len({*names}) < len(names):
                raise UserError(f"{path}, line 1: two columns have the same name: rename one.")
        elif len(cells) > len(names):
            character = "tabs" if delimiter == "\t" else "commas"
            raise UserError(
                f"{path}, line {number}: {len(cells)} cells in a table of {len(names)}: quote "
                f"cells that have {character}, or name all columns in line 1."
            )
        else:
            records.append(dict(zip(names, cells, strict=False)))
    return names or [], records


def _of_tabs(text):
    """Yields (number of the line, cells) of each line that is not blank."""
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            yield number, tab_cells(line)


def _of_csv(text, path, delimiter):
    """Yields (number of the line, cells) of each row that is not blank."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    # Strict: otherwise an unclosed quotation mark turns all further rows into one cell.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        yield from ((lines.line_num, cells) for cells in lines if cells)
    except csv.Error as error:
        raise UserError(
            f"{path}, line {lines.line_num}: a quotation mark that is never closed, or not "
            f"followed by {delimiter!r} ({error}): quote the cell and double the quotation marks "
            "in it."
        ) from error
