"""Tables for people and programs: columns with formats; text, Markdown, HTML, tab-separated values.

A cell is a text, a number, an interval (low, high), a number with its interval (number, low, high),
or None where there is nothing to show.
"""

import html
import itertools
import math
import numbers
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from zoo.errors import printable

# Formats of quantities.
NATS, PERPLEXITY, SCORE, SHARE, PERCENT, COUNT = ".4f", ",.2f", ".2f", ".1%", ".1f", ","
GAP = "-"
# Letters of a line.
WIDTH = 120


def format_value(value: Any, form: str) -> str:
    """Formats a cell; None and NaN are "-"."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        *figure, low, high = (format_value(part, form) for part in value)
        interval = [] if GAP in (low, high) else [f"[{low}, {high}]"]
        return " ".join([*figure, *interval]) or GAP
    return GAP if value is None or math.isnan(value) else format(value, form)


def typeset(value: Any, form: str) -> str:
    """Formats a cell as `format_value` does, with the signs of print: "−", "∞", and "–" for
    nothing."""
    text = format_value(value, form)
    if isinstance(value, str):
        return text
    return "–" if text == GAP else text.replace("-", "−").replace("inf", "∞")


def escape(value: object) -> str:
    """Escapes a text for HTML; control characters are written as escapes."""
    return html.escape(printable(str(value)))


class Column(NamedTuple):
    """A column of a table: text, to the left, or figures with a format, to the right."""

    header: str
    form: str = ""  # as `format` takes it; "" for text
    joined: bool = False  # stands on one line with the column before


class Table(NamedTuple):
    """A table; its last rows' cells may be missing, and a column without any is left out."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def _shown(self) -> list[tuple[Column, Sequence[Any]]]:
        """Returns each column with its cells, without the columns that have none."""
        rows = itertools.zip_longest(self.columns, *self.rows, fillvalue="")
        return [
            (column, cells)
            for column, *cells in rows
            if not cells or any(format_value(cell, column.form).strip(GAP) for cell in cells)
        ]

    def text(self, fold: bool = False) -> Iterator[str]:
        """Yields aligned lines; with `fold`, columns beyond `WIDTH` letters stand in tables below,
        behind the first column."""
        blocks: list[list[list[str]]] = []
        for column, values in self._shown():
            cells = [column.header, *(format_value(value, column.form) for value in values)]
            size = max(map(len, cells))
            padded = [cell.rjust(size) if column.form else cell.ljust(size) for cell in cells]
            if blocks and column.joined:
                blocks[-1].append(padded)
            else:
                blocks.append([padded])
        tables: list[list[list[str]]] = [[]]
        for block in blocks:
            wider = [*tables[-1], *block]
            if fold and tables[-1] and sum(len(cells[0]) + 2 for cells in wider) > WIDTH + 2:
                tables.append([blocks[0][0], *block])
            else:
                tables[-1] = wider
        for table in tables:
            yield from ("  ".join(cells).rstrip() for cells in zip(*table, strict=True))

    def markdown(self) -> str:
        """Returns the lines of the table in Markdown."""
        lines = [[column.header for column in self.columns], ["---"] * len(self.columns)]
        for row in self.rows:
            cells = itertools.zip_longest(row, self.columns)
            lines.append(
                ["" if cell is None else format_value(cell, column.form) for cell, column in cells]
            )
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    def html(self, caption: str) -> str:
        """Returns the table as HTML; the first cell of a row is its header."""
        columns = []
        for number, (column, values) in enumerate(self._shown()):
            name, side = escape(column.header), "" if column.form else ' class="left"'
            begin, end = f'<td{side} data-name="{name}">', "</td>"
            if number == 0:
                begin, end = '<th scope="row" class="left">', "</th>"
            cells = [f"{begin}{escape(typeset(value, column.form))}{end}" for value in values]
            columns.append([f'<th scope="col"{side}>{name}</th>', *cells])
        head, *body = ("".join(cells) for cells in zip(*columns, strict=True))
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        label = escape(caption)
        return (
            f'<p class="caption">{label}</p>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
            f'<table aria-label="{label}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )


def wrap_lines(lines: Iterable[str]) -> Iterator[str]:
    """Breaks lines longer than `WIDTH` between words, and indents the continuation lines."""
    for line in lines:
        if len(line) <= WIDTH:
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip())] + "    "
        yield from textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )


# ---- tables for programs: values separated by tabs, with every digit


def tsv_line(values: Iterable) -> str:
    """Formats a row of a table for pandas.read_csv(sep="\\t") and R's read.delim.

    Values are separated by tabs. Text is quoted, with quotation marks in it doubled; its line
    breaks, tabs and other control characters are written \\n, \\r, \\t, \\0 and \\x1b, so that a
    row is a line, and no terminal obeys a word.
    Numbers have all digits that are needed to read back the same number; infinite numbers are Inf
    and -Inf, truth values TRUE and FALSE. Missing values, NaN and None, are empty.
    """
    return "\t".join(map(_cell, values)) + "\n"


def user_columns(columns: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a user's column names, with "given_" before names of a table's or an earlier
    column."""
    distinct: list = []
    for name in names:
        while name in (*columns, *distinct):
            name = f"given_{name}"
        distinct.append(name)
    return tuple(distinct)


# C0 control characters, and the characters of C1 that begin a command to a terminal.
_CONTROLS = (*range(32), 127, 0x90, 0x98, 0x9B, 0x9D, 0x9E, 0x9F)
_ESCAPES = {code: repr(chr(code))[1:-1] for code in _CONTROLS} | {0: "\\0", ord('"'): '""'}


def _cell(value):
    """Formats a value as a cell of `tsv_line`."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None or math.isnan(value):
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))


def format_for_terminal(columns: Sequence[str], rows: Sequence[tuple]) -> Iterator[str]:
    """Yields the lines of a table for a terminal, with line breaks: columns to the left, numbers
    with two decimals."""
    cells = [[_short(value) for value in row] for row in rows]
    yield from (f"{line}\n" for line in Table([*map(Column, columns)], cells).text())


def _short(value):
    """Formats a value as a cell for a terminal, with two decimals."""
    if isinstance(value, str):
        return printable(value.replace("\n", "\\n"))
    finite = isinstance(value, float) and math.isfinite(value)
    return f"{value:7.2f}" if finite else _cell(value)
