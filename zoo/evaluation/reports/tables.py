"""Tables of text in aligned columns."""

from collections.abc import Iterator, Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> Iterator[str]:
    """Yields the lines of a table, its columns as wide as their widest cells.

    Args:
      header: a cell for each column.
      rows: cells as in the header.
      left: the number of columns that are aligned on the left; the others are on the right.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        padded = [
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        yield "  ".join(padded)
