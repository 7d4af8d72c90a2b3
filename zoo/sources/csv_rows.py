"""Rows of CSV and TSV tables, whose first line names the columns.

Both are read by RFC 4180, as pandas and R write them: cells may be in quotation marks, and those
within such a cell are doubled. A quotation mark inside any other cell is text, and so is one alone
between tabs, as in a treebank with a word a row. A cell between tabs ends on its line.
"""

import csv
import io
import pathlib
import re
import sys
from collections.abc import Iterator

from zoo.errors import UserError, shortened

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
