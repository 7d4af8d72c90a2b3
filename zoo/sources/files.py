"""Paths of data files, perhaps with a range of sentences, and their content as text."""

import bz2
import dataclasses
import functools
import gzip
import io
import logging
import lzma
import os
import pathlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from zoo.errors import UserError, shortened
from zoo.sources import free_corpora
from zoo.trust import permissions, user_modules

logger = logging.getLogger(__name__)

# Files that begin with these bytes are decompressed, whatever their names are. (An empty text
# compressed with bzip2 has others after the ninth.)
_OPEN: tuple[tuple[re.Pattern, Callable[[Any], Any]], ...] = (
    (re.compile(rb"\x1f\x8b"), gzip.open),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), bz2.open),
    (re.compile(rb"\xfd7zXZ\0"), lzma.open),
)
# Most bytes of a line in a compressed file, or in a file that is read line by line: 128 MiB, more
# than text8, a line of 100 MB. A compressed file of a few kB may hold a line larger than memory.
LONGEST_LINE = 1 << 27
# Most bytes of a line that holds a sentence, a hypothesis, a list of hypotheses or an arc: its
# words and numbers take some thirty times its size in memory.
LONGEST_SENTENCE = 1 << 20
# Most bytes of a JSON list that is read whole.
LONGEST_LIST = 1 << 24
_PIECE = 1 << 20  # bytes that are decompressed at a time
# Formats that are not read: their first bytes, and the remedy.
OTHERS = (
    (b"PK\x03\x04", "is a zip archive: unpack it"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it"),
    (b"\xff\xfe\0\0", "is UTF-32: convert it with iconv -f utf-32 -t utf-8"),
    (b"\xff\xfe", "is UTF-16: convert it with iconv -f utf-16 -t utf-8"),
    (b"\xfe\xff", "is UTF-16: convert it with iconv -f utf-16 -t utf-8"),
)
# The path of a split, or its paths.
Paths = TypeVar("Paths")
_RANGE = re.compile(r"(?s:(?P<path>.*))\[(?P<start>[^\[\]:]*):(?P<stop>[^\[\]]*)\]")
# At most sixteen digits: Python refuses to parse integers of several thousand digits.
_BOUND = re.compile(r"(-?[0-9]{1,16})?")
# A mistyped bound; anything else within the brackets belongs to the path, or to a hub.
_SLIP = re.compile(r"[-+:,._\s\d]*")


@functools.cache
def warn_once(message: str):
    """Logs a warning on a text; once, for the parts of a text are read one by one."""
    logger.warning(message)


@dataclasses.dataclass(frozen=True)
class Part:
    """A path and a range of its sentences, as in 'train.txt[:-728]'."""

    path: str
    range: slice

    @classmethod
    def parse(cls, text: str) -> "Part":
        """Parses 'path', 'path[start:stop]', 'path[:stop]' or 'path[start:]', like a slice."""
        match = _RANGE.fullmatch(text)
        if not match:
            return cls(text, slice(None))
        bounds = match["start"], match["stop"]
        if all(map(_BOUND.fullmatch, bounds)):
            return cls(match["path"], slice(*(int(b) if b else None for b in bounds)))
        if all(map(_SLIP.fullmatch, bounds)):
            given = text[len(match["path"]) :]
            raise UserError(
                f"{match['path']}: {shortened(given)} is not a range: write [start:stop], "
                "[start:] or [:stop] with whole numbers."
            )
        return cls(text, slice(None))


def data_folder() -> pathlib.Path | None:
    """Returns the folder of relative data paths, $ZOO_DATA; None if it is not set."""
    given = os.environ.get("ZOO_DATA")
    return pathlib.Path(given) if given else None


def find(path: str) -> pathlib.Path:
    """Finds the file or folder at `path` in the working folder, or else in `data_folder`.

    Files named configs/FILE that are in neither are taken from the recipes that come with zoo.
    """
    check_path(path)
    return locate(path)


def locate(path: str) -> pathlib.Path:
    """Finds a file as `find` does, without `check_path`: to compare files, not to read them."""
    if not path.strip():
        raise UserError(
            "a path is empty: give the path of a file (a shell replaces an unset variable by "
            "nothing, as in --set data.train=$FILE)."
        )
    paths = candidates(path)
    for candidate in paths:
        try:
            if candidate.exists():
                return candidate
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UserError(
                f"{shortened(path)} cannot be looked up ({why}): give the path of a file."
            ) from error
    if (own := user_modules.config_file(path)) is not None:
        return own
    if paths[0].is_absolute():
        raise UserError(f"{path} does not exist: give the path of a file.")
    beside = f", nor does {paths[1]}" if len(paths) > 1 else ""
    corpus = free_corpora.name_of(path)
    fetched = f", or fetch it by python -m zoo data {corpus}" if corpus else ""
    raise UserError(
        f"{path} does not exist{beside}: give the path of a file, or set ZOO_DATA to the folder "
        f"that holds it{fetched}."
    )


def candidates(path: str) -> list[pathlib.Path]:
    """Lists where a path may lie: in the working folder, then in `data_folder` if it is set."""
    folder = data_folder()
    return [pathlib.Path(path), *([] if folder is None else [folder / path])]


def check_path(path: str, files: Iterable[pathlib.Path] = ()):
    """Refuses a path outside the data folders that only another person's recipe names.

    Refused are absolute paths, paths with "..", data sets of a hub, and links that lead out of the
    working folder, unless into $ZOO_DATA. Links within $ZOO_DATA are the user's own.
    """
    origin = permissions.stranger(path, path=True)
    if origin is None:
        return
    if _leads_elsewhere(path) or any(map(_lies_elsewhere, (pathlib.Path(path), *files))):
        raise UserError(
            f"{origin} was not trained here by you, and its recipe names {shortened(path)}, which "
            "is not below the working folder or $ZOO_DATA: give the files to read yourself, as in "
            "--data FILE, or add --trust-paths if whatever it names may be read."
        )


def _leads_elsewhere(path):
    written = pathlib.PurePath(path)
    elsewhere = path.startswith(("hub:", "~")) or "://" in path or bool(written.anchor)
    return elsewhere or ".." in written.parts


def _lies_elsewhere(file):
    data = data_folder()
    if data is not None and pathlib.Path(os.path.abspath(file)).is_relative_to(data.absolute()):
        return False
    homes = [pathlib.Path(), *([] if data is None else [data])]
    try:
        return not any(file.resolve().is_relative_to(home.resolve()) for home in homes)
    except (OSError, ValueError, RuntimeError):  # no path of a file, or a circle of links
        return True


def read_text(path: pathlib.Path) -> str:
    """Reads a UTF-8 file, perhaps compressed with gzip, bzip2 or xz; see `with_line_feeds`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}: give a file of text.") from error
    content = _decompressed(content, path)
    check_utf8(content, path)
    return with_line_feeds(content.decode("utf-8-sig"))  # without a byte order mark


def with_line_feeds(text: str) -> str:
    r"""Writes the end of each line as \n, by the rule of all readers.

    In a text with \n, only \n and \r\n end a line, as `wc -l` counts, and a lone \r is white space;
    a text without any \n, as of an old Mac, has its lines ended by \r.
    """
    if "\n" not in text:
        return text.replace("\r", "\n")
    return text.replace("\r\n", "\n").replace("\r", " ")


def opener(start: bytes) -> Callable[[Any], Any] | None:
    """Returns the function that decompresses an open file, by its first bytes.

    Returns None if the file is not compressed.
    """
    return next((opens for magic, opens in _OPEN if magic.match(start)), None)


def too_long(where: str, longest: int) -> UserError:
    """Returns the error of a line of more than `longest` bytes; `where` names the line."""
    return UserError(
        f"{where} has more than {longest:,} bytes in one line: break the line, or "
        "get the file again if its lines should be shorter."
    )


def _decompressed(content, path):
    opens = opener(content)
    if opens is not None:
        try:
            return b"".join(_pieces(opens(io.BytesIO(content)), path))
        # ValueError of a bzip2 file that is cut short.
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{path} cannot be decompressed ({error}): get it again.") from error
    check_readable(content, path)
    return content


def check_readable(content: bytes, path: pathlib.Path):
    """Raises UserError, with the remedy, for a file in one of the formats `OTHERS`."""
    for prefix, what in OTHERS:
        if content.startswith(prefix):
            raise UserError(f"{path} {what} first.")


def _pieces(file, path) -> Iterator[bytes]:
    """Reads a decompressed file in pieces; raises UserError for a line that is too long."""
    number, length = 1, 0
    while piece := file.read(_PIECE):
        first = piece.find(b"\n")
        length += len(piece) if first < 0 else first
        if length > LONGEST_LINE:
            raise too_long(f"{path}, line {number},", LONGEST_LINE)
        if first >= 0:
            number += piece.count(b"\n")
            length = len(piece) - piece.rfind(b"\n") - 1
        yield piece


def check_utf8(content: bytes, path: pathlib.Path):
    """Raises UserError unless the bytes are UTF-8 text."""
    if not content.strip():
        raise UserError(f"{path} is empty: give a file with text.")
    if b"\0" in content:
        raise UserError(f"{path} is a binary file: give a UTF-8 text file.")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 (byte {content[error.start]:#04x}): convert it, "
            "for instance with iconv -f latin1 -t utf-8."
        ) from error


def test_names(tests: Sequence) -> tuple[str, ...]:
    """Names the test splits: "test" for a single one, otherwise "test1", "test2" ..."""
    if len(tests) == 1:
        return ("test",)
    return tuple(f"test{number}" for number in range(1, len(tests) + 1))


def path_of(paths: Mapping[str, Paths], split: str) -> Paths:
    """Returns the path of a split, or its paths; raises UserError for an unknown split."""
    if split not in paths:
        raise UserError(f"unknown split {split!r}: the data have {', '.join(paths)}.")
    return paths[split]
