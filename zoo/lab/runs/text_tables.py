"""Tables as text: values separated by tabs, for programs, and aligned columns, for a terminal."""

import math
import numbers
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from zoo.errors import printable


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


# Letters of a line.
WIDTH = 120
Block = tuple[Sequence[str], Sequence[Sequence[str]]]


def align(header: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 2) -> Iterator[str]:
    """Yields the lines of a table with aligned columns, `labels` of them to the left and the others
    to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        padded_cells = [
            cell.ljust(width) if number < labels else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        yield "  ".join(padded_cells)


def format_for_terminal(columns: Sequence[str], rows: Sequence[tuple]) -> Iterator[str]:
    """Yields the lines of a table for a terminal, with line breaks: columns to the left, numbers
    with two decimals."""
    cells = [[_short(value) for value in row] for row in rows]
    yield from (f"{line.rstrip()}\n" for line in align(columns, cells, labels=len(columns)))


def _short(value):
    """Formats a value as a cell for a terminal, with two decimals."""
    if isinstance(value, str):
        return printable(value.replace("\n", "\\n"))
    finite = isinstance(value, float) and math.isfinite(value)
    return f"{value:7.2f}" if finite else _cell(value)


def join_tables(blocks: Sequence[Block], labels: int = 2) -> Iterator[list[str]]:
    """Yields tables, each a list of lines of at most `WIDTH` letters if possible, of blocks
    (header, rows) side by side; each starts with the row names, the first column of the first
    block."""
    (first, *_), rows = blocks[0]
    names = [first], [row[:1] for row in rows]
    current, current_labels = blocks[0], labels
    for block in blocks[1:]:
        wider = _join(current, block)
        if len(next(align(*wider, current_labels))) > WIDTH:
            yield [*align(*current, current_labels)]
            wider, current_labels = _join(names, block), 1
        current = wider
    yield [*align(*current, current_labels)]


def _join(first: Block, second: Block) -> Block:
    """Returns a block with the columns of both blocks side by side."""
    rows = [[*row, *addition] for row, addition in zip(first[1], second[1], strict=True)]
    return [*first[0], *second[0]], rows


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
