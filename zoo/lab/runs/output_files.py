"""Reports to the terminal, and output files: checked before any work begins, and written whole.

An output file's folder must exist; it is not made, for its name may be mistyped.
"""

import contextlib
import errno
import functools
import importlib.metadata
import math
import numbers
import os
import pathlib
import platform
import re
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence

import jax

from zoo import version
from zoo.base import strict_json, temporary_files
from zoo.base.trust import permissions
from zoo.errors import UserError, printable
from zoo.lab.runs import location
from zoo.sources import files

# Files from which a run is read, which must not be overwritten; its results may be.
_RUN = (
    "experiment.json",
    "lexicon.npz",
    "source.npz",
    "checkpoints",
    "texts.npz",
    "start.json",
    "metrics.jsonl",
    "params.safetensors",
    "export.json",
)


def show(*texts: object):
    """Prints texts of a report, one a line."""
    # Other people's passports, recipes and lexicons may contain sequences that change a terminal.
    print(*(printable(str(text)) for text in texts), sep="\n", flush=True)


def check(file: str | pathlib.Path, what: str = "the table"):
    """Checks that a file can be written, without writing or making anything."""
    path = pathlib.Path(file)
    with _writing(path, what):
        if path.is_dir():
            raise _error(errno.EISDIR)
        path.parent.stat()  # raises an OSError that names the cause, if the folder is missing
        if not path.parent.is_dir():
            raise _error(errno.ENOTDIR)
        if not os.access(path if _is_stream(path) else path.parent, os.W_OK):
            raise _error(errno.EACCES)


def check_each(*written: tuple[str | pathlib.Path | None, str], read: Iterable[str] = ()):
    """Checks that several output files can be written, and that no input is overwritten."""
    seen: set[str] = set()
    sources: set[str] | None = None
    for file, what in written:
        if file is None:
            continue
        check(file, what)
        place = os.path.realpath(file)
        if place in seen and not _is_stream(pathlib.Path(file)):
            raise UserError(
                f"{file} is named for two outputs, and the second would overwrite the first: give "
                "each a file of its own."
            )
        if os.path.isfile(place):
            if sources is None:
                sources = {source for text in read for source in _places(text)}
            if any(place == one or place.startswith(one + os.sep) for one in sources):
                raise UserError(
                    f"{file} is read, and {what} would overwrite it: give {what} another name."
                )
        seen.add(place)


def _places(text):
    """Returns the real paths of the files and folders that an argument names."""
    found = _found(text)
    for folder in [*found]:
        if (recipe := pathlib.Path(folder, _RUN[0])).is_file():
            found.remove(folder)
            found |= {os.path.join(folder, part) for part in _RUN}
            with contextlib.suppress(UserError):  # the reader of the run raises it again
                for name in permissions.names_in(strict_json.read(recipe)):
                    found |= {*filter(os.path.isfile, _found(name))}
    return found


def _found(text):
    """Returns the real paths that exist of "PATH", "PATH[1:5]", "PATH,PATH" or "NAME=PATH"."""
    names = {part for name in permissions.names_of(text) for part in (name, *name.split(","))}
    names |= {name.partition("=")[2] for name in names}
    paths = [path for name in names - {""} for path in files.candidates(name)]
    return {os.path.realpath(path) for path in paths if os.path.exists(path)}


def write(file: str | pathlib.Path, write: Callable[[pathlib.Path], None], what: str = "the table"):
    """Writes a file atomically: it is complete or absent."""
    path = pathlib.Path(file)
    check(path, what)
    with _writing(path, what):
        if _is_stream(path):
            with temporary_files.naming(path):
                write(path)
        else:
            location.write_whole(path, write)


def write_table(file: str | pathlib.Path, columns: Iterable[str], rows: Iterable[tuple]):
    """Writes a table with a header, in the format of `line`."""
    write_lines(file, map(line, (columns, *rows)), "the table")


def write_lines(file: str | pathlib.Path, lines: Iterable[str], what: str):
    """Writes lines to a file in UTF-8."""

    def write_all(path):
        with open(path, "w", encoding="utf-8", newline="\n") as text:
            text.writelines(lines)

    write(file, write_all, what)


def line(values: Iterable) -> str:
    """Formats a row of a table for pandas.read_csv(sep="\\t") and R's read.delim.

    Values are separated by tabs. Text is quoted, with quotation marks in it doubled; its line
    breaks, tabs and other control characters are written \\n, \\r, \\t, \\0 and \\x1b, so that a
    row is a line, and no terminal obeys a word.
    Numbers have all digits that are needed to read back the same number; infinite numbers are Inf
    and -Inf, truth values TRUE and FALSE. Missing values, NaN and None, are empty.
    """
    return "\t".join(map(_cell, values)) + "\n"


def beside(own: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """Renames a user's columns, by "given_" in front, where a table has columns of these names."""
    names: list = []
    for name in given:
        while name in (*own, *names):
            name = f"given_{name}"
        names.append(name)
    return tuple(names)


# C0 control characters, and the characters of C1 that begin a command to a terminal.
_CONTROLS = (*range(32), 127, 0x90, 0x98, 0x9B, 0x9D, 0x9E, 0x9F)
_ESCAPES = {code: repr(chr(code))[1:-1] for code in _CONTROLS} | {0: "\\0", ord('"'): '""'}


def _cell(value):
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None or math.isnan(value):
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))


def _is_stream(path):
    """Whether a path exists and is not a regular file, such as /dev/stdout: it is not replaced."""
    return path.exists() and not path.is_file()


def _error(number):
    return OSError(number, os.strerror(number))


@contextlib.contextmanager
def _writing(path, what):
    """Raises UserError where a file cannot be written; errors of a full disk pass."""
    try:
        yield
    except BrokenPipeError:  # the reader of /dev/stdout has seen enough
        raise
    except OSError as error:
        if error.errno in temporary_files.FULL:
            raise
        raise UserError(
            f"{what} {path} cannot be written ({error.strerror or error}): give a name in a "
            "folder that exists and can be written to."
        ) from error


# ------------- the environment of a run: versions, git revision and machine, for passports

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


@functools.cache
def versions() -> dict[str, str]:
    """Returns the versions of Python, of Zoo and of the packages that compute, by name."""
    packages = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # flax need not be there
            packages[name] = importlib.metadata.version(name)
    return {"python": platform.python_version(), "zoo": version.VERSION, **packages}


@functools.cache
def revision() -> str | None:
    """Returns the git revision of Zoo, with "-dirty" if its files were changed or modules added."""
    folder = pathlib.Path(version.__file__).resolve().parent.parent

    def git(*arguments):
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An installed Zoo may lie within the checkout of another project.
        if pathlib.Path(git("rev-parse", "--show-toplevel")).resolve() != folder:
            return None
        changed = git("status", "--porcelain", "--untracked-files=no")
        added = git("ls-files", "--others", "--exclude-standard", "--", "*.py")
        return git("rev-parse", "HEAD") + ("-dirty" if changed or added else "")
    except (OSError, subprocess.CalledProcessError):
        return None


@functools.cache
def machine() -> dict:
    """Describes the machine: processor, cores, and the devices that JAX sees."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    devices = jax.devices()
    return {
        "processor": model[1] if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "device": devices[0].device_kind,
        "platform": devices[0].platform,
        "devices": len(devices),
    }


# ------------------------ tables of text in aligned columns, and lines that fit a terminal

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


def for_reading(columns: Sequence[str], rows: Sequence[tuple]) -> Iterator[str]:
    """Yields the lines of a table for a terminal: aligned, and numbers with two decimals."""
    shown = [[_short(value) for value in row] for row in rows]
    yield from (f"{line.rstrip()}\n" for line in aligned(columns, shown, left=len(columns)))


def _short(value):
    if isinstance(value, str):
        return printable(value.replace("\n", "\\n"))
    finite = isinstance(value, float) and math.isfinite(value)
    return f"{value:7.2f}" if finite else _cell(value)


def tables_beside(blocks: Sequence[Block], left: int = 2) -> Iterator[list[str]]:
    """Yields the lines of tables that have the blocks side by side, as many as fit `WIDTH`."""
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
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
