"""Lines of text files, read one by one in constant memory, with the checks of `read_text`.

Lines end as `files.with_line_feeds` tells.
"""

import functools
import lzma
import pathlib
import zlib
from collections.abc import Iterator

from zoo.errors import UserError
from zoo.sources import files

# The beginning of a JSON list, perhaps after a byte order mark.
_LIST = (b"[", b"\xef\xbb\xbf[")


def read_lines(
    path: str, longest: int = files.LONGEST_LINE, longest_list: int = 0
) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, text without line break) of each line while reading a file or pipe."""
    file = files.find(path)
    number = 0
    try:
        with open(file, "rb") as raw:
            start = raw.peek(16)[:16]
            files.check_readable(start, file)
            opens = files.opener(start)
            text = raw if opens is None else opens(raw)
            pieces = iter(functools.partial(text.readline, longest + 1), b"")
            for number, line in enumerate(pieces, 1):
                most = longest
                if len(line) > most and number == 1 and line.startswith(_LIST):
                    most = max(longest, longest_list)
                    line += text.readline(most + 1 - len(line))
                if len(line) > most and not line.endswith(b"\n"):
                    raise files.too_long(f"{file}, line {number},", most)
                yield from broken(_text(line, number, file), number)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:
            raise UserError(
                f"{file} cannot be read: {error.strerror}: give a file of text."
            ) from error
        raise UserError(
            f"{file} cannot be decompressed after line {number} ({error}): get it again."
        ) from error
    if not number:
        raise UserError(f"{file} is empty: give a file with text.")


def broken(line: str, number: int) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, text) of a line up to \\n, which is several if no line ends so."""
    found = line.removesuffix("\n").removesuffix("\r")
    if number == 1 and not line.endswith("\n"):  # nor does any other line
        yield from enumerate(found.split("\r"), 1)
    else:
        yield number, found.replace("\r", " ")


def _text(line: bytes, number: int, path: pathlib.Path) -> str:
    if b"\0" in line:
        raise UserError(f"{path}, line {number}: binary: give a UTF-8 text file.")
    try:
        # Without a byte order mark.
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 (byte {line[error.start]:#04x}): convert it, for "
            "instance with iconv -f latin1 -t utf-8."
        ) from error
