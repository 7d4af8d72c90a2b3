"""Tables of text in aligned columns, and lines that fit a terminal."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

# Letters of a line.
WIDTH = 120
Block = tuple[Sequence[str], Sequence[Sequence[str]]]


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> Iterator[str]:
    """Yields the lines of a table, its columns as wide as their widest cells."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        padded = [
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        yield "  ".join(padded)


def beside(blocks: Sequence[Block], left: int = 2) -> Iterator[list[str]]:
    """Yields the lines of tables that have the blocks side by side, as many as fit `WIDTH`.

    Each table begins with the first column of the first block.
    """
    (first, *_), rows = blocks[0]
    names = [first], [row[:1] for row in rows]
    current, lefts = blocks[0], left
    for block in blocks[1:]:
        wider = _joined(current, block)
        if len(next(aligned(*wider, lefts))) > WIDTH:
            yield [*aligned(*current, lefts)]
            wider, lefts = _joined(names, block), 1
        current = wider
    yield [*aligned(*current, lefts)]


def _joined(one: Block, other: Block) -> Block:
    rows = [[*first, *second] for first, second in zip(one[1], other[1], strict=True)]
    return [*one[0], *other[0]], rows


def wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Breaks lines that are longer than `WIDTH` between words, and indents what follows."""
    for line in lines:
        if len(line) <= WIDTH:
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip())] + "    "
        yield from textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
