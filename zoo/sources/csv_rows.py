"""Rows of tables whose columns are separated by commas or tabs, under a line with their names."""

import csv
import io
import pathlib
import sys
from typing import Literal

from zoo.errors import UserError


def rows(text: str, path: pathlib.Path, delimiter: str = ",") -> tuple[list[str], list[dict]]:
    """(names of the columns, {name: cell} of each row that is not blank).

    Cells may be in quotation marks; where tabs separate, these are text. A row may lack cells at
    its end, which it does not have then. Cells may be as long as they like.

    Raises:
      UserError: with the line, where a quotation mark is out of place, or a row has more cells than
        there are columns: text with commas in it that nothing quotes.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    # Strictly: else a quotation mark that is never closed takes all rows after it for one cell.
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
            f"followed by {delimiter!r} ({error}): write those of the text twice, within two more."
        ) from error
    return names or [], records
