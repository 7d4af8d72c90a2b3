"""Rows of CSV and TSV tables, whose first line names the columns."""

import csv
import io
import pathlib
import sys
from typing import Literal

from zoo.errors import UserError


def rows(text: str, path: pathlib.Path, delimiter: str = ",") -> tuple[list[str], list[dict]]:
    """Returns (names of the columns, {name: cell} for each row that is not blank).

    In CSV, cells may be in quotation marks; in TSV, quotation marks are text. The dict of a row
    that ends early lacks the missing cells. The length of a cell is not limited.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    # Strict: otherwise an unclosed quotation mark turns all further rows into one cell.
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True
    )
    names, records = None, []
    try:
        for cells in lines:
            if not cells:
                continue
            if names is None:
                names = cells
                if len({*names}) < len(names):
                    raise UserError(f"{path}, line 1: two columns have the same name: rename one.")
            elif len(cells) > len(names):
                mend = "leave tabs out of cells" if quoting else "quote cells that have commas"
                raise UserError(
                    f"{path}, line {lines.line_num}: {len(cells)} cells in a table of "
                    f"{len(names)}: {mend}, or name all columns in line 1."
                )
            else:
                records.append(dict(zip(names, cells, strict=False)))
    except csv.Error as error:
        raise UserError(
            f"{path}, line {lines.line_num}: a quotation mark that is never closed, or not "
            f"followed by {delimiter!r} ({error}): quote the cell and double the quotation marks "
            "in it."
        ) from error
    return names or [], records
