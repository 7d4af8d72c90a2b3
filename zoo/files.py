"""Paths of data files, whole or in part, and reading them with clear errors."""

import dataclasses
import gzip
import os
import pathlib
import re
import zlib

from zoo.errors import UserError

_GZIP = b"\x1f\x8b"  # the first bytes of what it writes
_SLICE = re.compile(r"^(?P<path>.*)\[(?P<start>-?\d*):(?P<stop>-?\d*)\]$")


@dataclasses.dataclass(frozen=True)
class Part:
    """A path and the range of its sentences that is meant, as in 'train.txt[:-728]'."""

    path: str
    range: slice

    @classmethod
    def parse(cls, text: str) -> "Part":
        """'path', 'path[start:stop]', 'path[:stop]' or 'path[start:]'; numbers may be negative."""
        match = _SLICE.match(text)
        if not match:
            return cls(text, slice(None))
        bounds = (int(match[name]) if match[name] else None for name in ("start", "stop"))
        return cls(match["path"], slice(*bounds))


def data_folder() -> pathlib.Path:
    """The folder of relative data paths: $ZOO_DATA, or ../shared/data beside the working folder."""
    return pathlib.Path(os.environ.get("ZOO_DATA") or "../shared/data")


def find(path: str) -> pathlib.Path:
    """The file or folder at `path`, taken from the working folder or else from `data_folder`."""
    for candidate in (pathlib.Path(path), data_folder() / path):
        if candidate.exists():
            return candidate
    beside = f", nor {data_folder() / path}" if os.environ.get("ZOO_DATA") else ""
    raise UserError(
        f"there is no file {path}{beside}: give the path of one, or set ZOO_DATA to the folder "
        "that holds it."
    )


def read_text(path: pathlib.Path) -> str:
    """The text of a UTF-8 file, perhaps compressed with gzip.

    Raises:
      UserError: if it cannot be read, or is empty, binary or not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path} cannot be decompressed ({error}): get it again.") from error
    check_utf8(content, path)
    return content.decode("utf-8-sig")  # without the mark that some editors put first


def check_utf8(content: bytes, path: pathlib.Path):
    """UserError unless the bytes are text."""
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
            "for instance with iconv -t utf-8."
        ) from error


def test_names(tests: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the test splits: "test" if there is one, "test1", "test2" ... if several."""
    if len(tests) == 1:
        return ("test",)
    return tuple(f"test{number}" for number in range(1, len(tests) + 1))


def path_of(paths: dict[str, str], split: str) -> str:
    """The path of a split."""
    if split not in paths:
        raise UserError(f"there is no split {split!r}: the data have {', '.join(paths)}.")
    return paths[split]
