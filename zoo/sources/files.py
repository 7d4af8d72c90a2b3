"""Paths of data files, perhaps with a range of sentences, and their content as text."""

import bz2
import codecs
import collections
import contextlib
import dataclasses
import functools
import glob
import gzip
import io
import logging
import lzma
import math
import os
import pathlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from zoo.base import regular_files
from zoo.base.trust import permissions, user_modules
from zoo.errors import UserError, quote, shortened
from zoo.sources import fetch, foreign_formats, table_rows

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
# The beginning of a JSON list, perhaps after a byte order mark.
_LIST = (b"[", b"\xef\xbb\xbf[")
_PIECE = 1 << 18  # bytes that are decompressed at a time
# Formats that are not read: their first bytes, and the remedy.
UNREADABLE_FORMATS = (
    (b"PK\x03\x04", "is a zip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it first"),
    (b"\xff\xfe\0\0", "is UTF-32: convert it with iconv -f utf-32 -t utf-8 first"),
    (b"\xff\xfe", "is UTF-16: convert it with iconv -f utf-16 -t utf-8 first"),
    (b"\xfe\xff", "is UTF-16: convert it with iconv -f utf-16 -t utf-8 first"),
    (b"mmap lm http://", "is KenLM's binary: give the ARPA file from which build_binary made it"),
    (regular_files.LFS, regular_files.LFS_POINTER),
)
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
            range_text = text[len(match["path"]) :]
            raise UserError(
                f"{match['path']}: {shortened(range_text)} is not a range: write [start:stop], "
                "[start:] or [:stop] with whole numbers."
            )
        return cls(text, slice(None))


def data_folder() -> pathlib.Path | None:
    """Returns the folder of relative data paths, $ZOO_DATA; None if it is not set."""
    folder = os.environ.get("ZOO_DATA")
    return pathlib.Path(folder) if folder else None


def find(path: str) -> pathlib.Path:
    """Finds the file or folder at `path` in the working folder, in `data_folder`, or in configs/
    among the recipes that come with zoo."""
    check_path(path)
    return locate(path)


def find_or_none(path: str) -> pathlib.Path | None:
    """Finds a file or folder as `find` does; None for a pattern, a data set, or nothing."""
    try:
        return find(path)
    except UserError:
        return None


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
            reason = getattr(error, "strerror", None) or error
            raise UserError(
                f"{shortened(path)} cannot be looked up ({reason}): give the path of a file."
            ) from error
    recipe = user_modules.config_file(path)
    if recipe is not None:
        return recipe
    if paths[0].is_absolute():
        raise UserError(f"{path} does not exist: give the path of a file.")
    beside = f", nor does {paths[1]}" if len(paths) > 1 else ""
    corpus = fetch.name_of(path)
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
    """Refuses a path outside the data folders that only another person's recipe names."""
    origin = permissions.stranger(path, path=True)
    if origin is None:
        return
    pure_path = pathlib.PurePath(path)
    elsewhere = path.startswith(("hub:", "~")) or "://" in path or ".." in pure_path.parts
    if elsewhere or pure_path.anchor or any(map(_lies_elsewhere, (pathlib.Path(path), *files))):
        raise UserError(
            f"{origin} was not trained here by you, and its recipe names {shortened(path)}, which "
            "is not below the working folder or $ZOO_DATA: give the files to read yourself, as in "
            "--data FILE, or add --trust-paths if whatever it names may be read."
        )
    if any(map(regular_files.is_irregular, candidates(path))):
        raise UserError(
            f"{origin} was not trained here by you, and its recipe names {shortened(path)}, which "
            "is not a regular file: give the files to read yourself, as in --data FILE."
        )


def _lies_elsewhere(file):
    data = data_folder()  # links within it are the user's own
    if data is not None and pathlib.Path(os.path.abspath(file)).is_relative_to(data.absolute()):
        return False
    try:
        return not any(file.resolve().is_relative_to(home.resolve()) for home in candidates(""))
    except (OSError, ValueError, RuntimeError):  # no path of a file, or a circle of links
        return True


# ------------------------------------------------------------ the content of text files


def read(path: str) -> tuple[pathlib.Path, str]:
    file = find(path)
    return file, read_text(file)


def read_text(path: pathlib.Path) -> str:
    """Reads a UTF-8 file, perhaps compressed with gzip, bzip2 or xz; see `with_line_feeds`."""
    return "".join(_texts(path, in_memory=True))


def lines_in(path: pathlib.Path) -> Iterator[str]:
    """Yields the lines of what `read_text` reads, in memory for little more than one of them."""
    for text in _texts(path):
        yield from lines(text)


def lines(text: str) -> list[str]:
    """Splits a text into lines; the last one may lack its line break."""
    return text.removesuffix("\n").split("\n")


def with_line_feeds(text: str) -> str:
    r"""Writes the end of each line as \n, by the rule of all readers."""
    # Only \n and \r\n end a line, as `wc -l` counts, and a lone \r is white space; a text without
    # any \n, as of an old Mac, has its lines ended by \r.
    if "\n" not in text:
        return text.replace("\r", "\n")
    return text.replace("\r\n", "\n").replace("\r", " ")


def read_lines(
    path: str, longest: int = LONGEST_LINE, longest_list: int = 0
) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, text without line break) of each line, in constant memory."""
    file = find(path)
    number = 0
    with _opened(file, lambda: f" after line {number}") as text:
        pieces = iter(functools.partial(text.readline, longest + 1), b"")
        for number, line in enumerate(pieces, 1):
            limit = longest
            if len(line) > limit and number == 1 and line.startswith(_LIST):
                limit = max(longest, longest_list)
                line += text.readline(limit + 1 - len(line))
            if len(line) > limit and not line.endswith(b"\n"):
                raise _too_long(f"{file}, line {number},", limit)
            yield from split_line(_text(line, file, number), number)
    if not number:
        raise UserError(f"{file} is empty: give a file with text.")


def split_line(line: str, number: int) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, text) of a line up to \\n, which is several if no line ends so."""
    text = line.removesuffix("\n").removesuffix("\r")
    if number == 1 and not line.endswith("\n"):  # nor does any other line
        yield from enumerate(text.split("\r"), 1)
    else:
        yield number, text.replace("\r", " ")


@contextlib.contextmanager
def _opened(path, after: Callable[[], str] = str) -> Iterator[Any]:
    """Opens the bytes of a file, decompressed; `after` tells how far they were read."""
    try:
        with open(path, "rb") as raw:
            start = raw.peek(64)[:64]
            opens = next((opens for magic, opens in _OPEN if magic.match(start)), None)
            for prefix, message in UNREADABLE_FORMATS:
                if start.startswith(prefix):
                    raise UserError(f"{path} {message}.")
            yield raw if opens is None else opens(raw)
    # ValueError of a bzip2 file that is cut short.
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:
            raise UserError(
                f"{path} cannot be read: {error.strerror}: give a file of text."
            ) from error
        raise UserError(
            f"{path} cannot be decompressed{after()} ({error}): get it again."
        ) from error


def _texts(path, in_memory: bool = False) -> Iterator[str]:
    """Yields a text in pieces of whole lines, all held `in_memory` or not; refuses blank texts."""
    before, line_start, is_blank = 0, b"", True
    with _opened(path) as file:
        while True:
            pieces = [line_start]
            # The rest of a line that no piece ends.
            while (piece := file.read(_PIECE)) and b"\n" not in piece:
                pieces.append(piece)
                # A plain file has the size that it shows.
                plain = in_memory and isinstance(file, io.BufferedReader)
                if not plain and sum(map(len, pieces)) > LONGEST_LINE:
                    raise _too_long(f"{path}, line {before + 1},", LONGEST_LINE)
            # A binary file is refused as one, whatever its first lines are.
            end = len(piece) if b"\0" in piece else piece.rfind(b"\n") + 1
            content, line_start = b"".join([*pieces, piece[:end]]), piece[end:]
            if content:
                is_blank = is_blank and not content.strip()
                text = _text(content, path, before=before)
                # A later piece without \n is the last line of a text that has others.
                yield text.replace("\r", " ") if before and not end else with_line_feeds(text)
                before += content.count(b"\n")
            if not piece:
                break
    if is_blank:
        raise UserError(f"{path} is empty: give a file with text.")


def _too_long(location, longest):
    return UserError(
        f"{location} has more than {longest:,} bytes in one line: break the line, or "
        "get the file again if its lines should be shorter."
    )


def _text(content: bytes, path, number: int = 0, before: int = 0) -> str:
    """Decodes UTF-8, a line by its number or all lines after some, without a byte order mark."""
    if number < 2 and not before:
        content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        problem = f", line {number}: binary" if number else " is a binary file"
        text = ", as Kaldi's lattice-copy ark:- ark,t:- writes" if b" \0B" in content else ""
        raise UserError(f"{path}{problem}: give a UTF-8 text file{text}.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = number or before + content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 (byte {content[error.start]:#04x}): convert it, "
            "for instance with iconv -f latin1 -t utf-8."
        ) from error


_NUMBER = re.compile(r"[0-9eE.+-]+")


def parse_number(text: object, location: str, name: str) -> float:
    """Parses a finite number; otherwise raises UserError naming `location` and `name`."""
    try:
        # Refuse Python's own 1_000, digits of other scripts, and all but text and numbers.
        value = float(str(text)) if _NUMBER.fullmatch(str(text)) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(
            f"{location}: {name} is {shortened(str(text), 80)!r}: give a finite number."
        )
    return value


# -------------------------------------------- text files in folders, and patterns of paths

COMPRESSED = (".gz", ".bz2", ".xz")
# Files in a folder of text that are not part of the text.
_BACKUP = re.compile(r"(?i).*(~|\.bak|\.orig|\.old|\.swp|\.swo|\.tmp)|#.*#")
_ABOUT = re.compile(
    r"(?i)(readme|licen[cs]e|copying|notice|authors|changelog|citation)([._-].*)?|.*\.(md|rst)"
)
_REPEATED = re.compile(r"(^|/)(\*\*/){2,}")
_SHARD = re.compile(r"-\d+-of-\d+$|\.\d+$")  # news.en-00001-of-00100


def kind(path: pathlib.Path) -> str:
    """Returns the suffix of a file's format: ".csv" of "A.CSV.gz", ".en" of "news.en-1-of-9"."""
    name = functools.reduce(str.removesuffix, COMPRESSED, path.name.lower())
    return pathlib.PurePath(_SHARD.sub("", name)).suffix


def stem(path: pathlib.Path) -> str:
    """Returns a file's name without its format: "rec.1" of "rec.1.slf.gz"."""
    return pathlib.PurePath(functools.reduce(str.removesuffix, COMPRESSED, path.name)).stem


def text_files(path: str) -> list[pathlib.Path]:
    """Lists, and logs, the files at a path: a file, a folder of text, or a pattern ('news/*.en').

    A folder stands for all files below it, in the order of their names, without hidden files,
    backups, and files such as README; a pattern for all files that match, without hidden ones.
    """
    check_path(path)
    root = find_or_none(path)
    if root is None and glob.has_magic(path):
        return _log_files(path, _matches(path))
    root = root or find(path)
    if not root.is_dir():
        return [root]
    working_folder = pathlib.Path.cwd()
    if root.resolve() in (working_folder, *working_folder.parents):
        raise UserError(
            f"{path} is the working folder, or one around it: give a folder with nothing but text, "
            "or a pattern such as 'texts/*.txt'."
        )
    members = sorted(p for p in root.rglob("*") if p.is_file())
    chosen = [member for member in members if _is_text(member.relative_to(root))]
    if not chosen:
        beside = f" but {quote([p.name for p in members], 3)}" if members else ""
        raise UserError(f"{path} is a folder without files of text{beside}: give one with text.")
    kinds = sorted({kind(member) for member in chosen})
    if len(kinds) > 1 and not {*kinds} <= {".txt", *table_rows.READERS}:
        raise UserError(
            f"{path} has files of several kinds ({quote(kinds)}): choose some of them with a "
            f"pattern, such as '{path}/*{kinds[-1]}'."
        )
    return _log_files(path, chosen)


def _matches(path):
    for pattern in candidates(path):
        # Each further **/ in a row finds each file again in each folder above it.
        once = _REPEATED.sub(r"\1**/", str(pattern))
        members = map(pathlib.Path, glob.iglob(once, recursive=True))
        matches = sorted({*filter(pathlib.Path.is_file, members)})
        if matches:
            return matches
    raise UserError(f"no file matches the pattern {path}: give another, or the path of a file.")


def _is_text(member):
    hidden = any(part.startswith(".") for part in member.parts)
    return not (hidden or _BACKUP.fullmatch(member.name) or _ABOUT.fullmatch(member.name))


def _log_files(path, chosen):
    check_path(path, chosen)
    logger.info("%s: %d files: %s", path, len(chosen), quote([str(p) for p in chosen], 3))
    return chosen


def lines_at(
    path: str, column: str, streaming: bool, setting: str = "data.column", after: tuple = ()
) -> Iterator[str]:
    """Yields the `bare_lines` of texts at a path without a range, with some after each file."""
    check_path(path)
    yield from bare_lines(_lines_at(path, column, streaming, setting, after), path)


# A mark of a sentence, such as </s>, is the boundary at an edge of a line, as for SRILM's tools;
# within a line it is a word. No word of a natural text begins or ends with one of these marks, so
# they need no blank beside them.
_GLUED = (
    r"</?s>|<s/>|<(?:[bes]os|eod|pad)>"
    r"|<\|(?:endoftext|startoftext|begin_of_text|end_of_text|im_start|im_end)\|>"
)
_SEPARATE = r"<(?:start|end)>|\[(?:[bes]os|cls|sep|pad)]|x?x[be]os"
MARK = re.compile(rf"(?i:{_GLUED}|{_SEPARATE})")
_SIGNS = ("<", "[", "xbos", "xeos")  # each mark has one of them, in one case
_MARKS = re.compile(rf"(?i:(?:(?:{_GLUED}|(?<!\S)(?:{_SEPARATE})(?!\S))\s*+)++)")
_AS_BOUNDARY = (
    "begin or end with marks such as </s> or <eos>, which are read as the boundary (see "
    "vocabulary.boundary), not as text"
)


def _bare_span(line):
    start, end = 0, len(line)
    if not any(map(line.__contains__, _SIGNS)):  # as nearly all lines
        return start, end
    first = _MARKS.match(line, end - len(line.lstrip()))
    if first:
        start = first.end()
    for last in collections.deque(_MARKS.finditer(line, start), maxlen=1):
        if last.end() == end:
            end = max(start, len(line[: last.start()].rstrip()))
    return start, end


def bare_span(line: str) -> tuple[int, int]:
    """Returns the positions (start, end) of a line's text, without the marks around it; a warning
    tells of the first line with marks."""
    span = _bare_span(line)
    if span != (0, len(line)):
        warn_once(f"some lines {_AS_BOUNDARY}")
    return span


def bare(line: str) -> str:
    """Returns a line without the marks around it, its white space unchanged if it has none."""
    return line[slice(*bare_span(line))]


def bare_lines(lines: Iterable[str], path: str) -> Iterator[str]:
    """Yields lines without marks of sentences around them; a warning counts lines with marks."""
    total = marked = 0
    for line in lines:
        text = line[slice(*_bare_span(line))]
        total += bool(line.strip())
        marked += len(text) < len(line)
        yield text
    if marked:
        warn_once(f"{path}: {marked:,} of {total:,} lines {_AS_BOUNDARY}")


def _lines_at(path, column, streaming, setting, after):
    table = table_rows.data_set(path, streaming)
    if table:
        yield from table_rows.lines_of(table, path, column, setting)
        return
    for member in text_files(path):
        reader = table_rows.READERS.get(kind(member))
        if reader:
            yield from table_rows.lines_of(reader(member), member, column, setting)
        else:
            yield from foreign_formats.check_text(lines_in(member), member)
        yield from after
