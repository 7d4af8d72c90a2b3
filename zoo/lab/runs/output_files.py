"""Reports to the terminal, and output files: checked before any work begins, and written whole.

An output file's folder must exist; it is not made, for its name may be mistyped.
"""

import contextlib
import errno
import os
import pathlib
from collections.abc import Callable, Iterable

from zoo.base import strict_json, temporary_files
from zoo.base.trust import permissions
from zoo.errors import UserError, printable
from zoo.lab.runs import atomic_writes, text_tables
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
            atomic_writes.write_whole(path, write)


def write_table(file: str | pathlib.Path, columns: Iterable[str], rows: Iterable[tuple]):
    """Writes a table with a header, in the format of `text_tables.tsv_line`."""
    write_lines(file, map(text_tables.tsv_line, (columns, *rows)), "the table")


def write_lines(file: str | pathlib.Path, lines: Iterable[str], what: str):
    """Writes lines to a file in UTF-8."""

    def write_all(path):
        with open(path, "w", encoding="utf-8", newline="\n") as text:
            text.writelines(lines)

    write(file, write_all, what)


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
