"""Lines of reports, and files that the user names, looked at before any work begins and written
whole.

A folder that is not there is refused rather than made: its name is more often a slip than a wish.
"""

import contextlib
import errno
import math
import numbers
import os
import pathlib
from collections.abc import Callable, Iterable

from zoo import strict_json, temporary_files
from zoo.errors import UserError, printable
from zoo.runs import atomic_files
from zoo.sources import files

# What the folder of a run is read from; others of its files, such as results, may be written anew.
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
    """Prints texts of a report, each on a line of its own, made `printable`: the passports, recipes
    and lexicons of others may hold what a terminal would obey."""
    print(*(printable(str(text)) for text in texts), sep="\n", flush=True)


def check(file: str | pathlib.Path, what: str = "the table"):
    """UserError if the file, called `what`, could not be written; makes and changes nothing."""
    path = pathlib.Path(file)
    with _writing(path, what):
        if path.is_dir():
            raise _error(errno.EISDIR)
        path.parent.stat()  # says what is wrong with the folder, if it is not there
        if not path.parent.is_dir():
            raise _error(errno.ENOTDIR)
        if not os.access(path if _is_stream(path) else path.parent, os.W_OK):
            raise _error(errno.EACCES)


def check_each(*written: tuple[str | pathlib.Path | None, str], read: Iterable[str] = ()):
    """Checks several (file or None, what it is called), each as `check`.

    Args:
      read: what is read before, as the user gives it: files, perhaps with a range, several with
        commas, or as NAME=FILE; and folders.

    Raises:
      UserError: as `check`, or two are one file, or one is read as well.
    """
    seen: set[str] = set()
    sources: set[str] | None = None
    for file, what in written:
        if file is None:
            continue
        check(file, what)
        place = os.path.realpath(file)
        if place in seen and not _is_stream(pathlib.Path(file)):
            raise UserError(
                f"{file} is named for two outputs, and the second would take the place of the "
                "first: give each a file of its own."
            )
        if os.path.isfile(place):
            if sources is None:
                sources = {source for text in read for source in _places(text)}
            if any(place == one or place.startswith(one + os.sep) for one in sources):
                raise UserError(
                    f"{file} is read, and {what} would take its place: give {what} another name."
                )
        seen.add(place)


def _places(text):
    """Where all lies that a text names: files, folders, and for the folder of a run its parts and
    the files that its recipe names."""
    from zoo.runs import workdir  # which needs JAX, as not all commands do

    found = _found(text)
    for folder in [*found]:
        if (recipe := pathlib.Path(folder, _RUN[0])).is_file():
            found.remove(folder)
            found |= {os.path.join(folder, part) for part in _RUN}
            with contextlib.suppress(UserError):  # whoever reads the run tells of it
                for name in workdir.names(strict_json.read(recipe)):
                    found |= {*filter(os.path.isfile, _found(name))}
    return found


def _found(text):
    """The places of what is there of "PATH", "PATH[1:5]", "PATH,PATH" or "NAME=PATH"."""
    names = {part for name in files.names_in(text) for part in (name, *name.split(","))}
    names |= {name.partition("=")[2] for name in names}
    paths = [path for name in names - {""} for path in files.candidates(name)]
    return {os.path.realpath(path) for path in paths if os.path.exists(path)}


def write(file: str | pathlib.Path, write: Callable[[pathlib.Path], None], what: str = "the table"):
    """write(path), so that the file is there whole or not at all; UserError as `check`."""
    path = pathlib.Path(file)
    check(path, what)
    with _writing(path, what):
        if _is_stream(path):
            with temporary_files.naming(path):
                write(path)
        else:
            atomic_files.write_whole(path, write)


def write_table(file: str | pathlib.Path, columns: Iterable[str], rows: Iterable[tuple]):
    """Rows of as many values as there are columns, under a header; see `line`."""
    write_lines(file, map(line, (columns, *rows)), "the table")


def write_lines(file: str | pathlib.Path, lines: Iterable[str], what: str):
    """Lines with their ends, as a file called `what`; UserError as `check`."""

    def write_all(path):
        with open(path, "w", encoding="utf-8", newline="\n") as text:
            text.writelines(lines)

    write(file, write_all, what)


def line(values: Iterable) -> str:
    """A line of a table, with its end: what pandas.read_csv(sep="\\t") and R's read.delim read.

    Tabs part the values. Text stands in quotation marks, those within it doubled, so that neither
    these, nor an apostrophe, nor # means anything; line breaks, tabs and zero characters in it are
    written \\n, \\r, \\t and \\0, so that a row is a line. Integers have their digits, other
    numbers all that it takes to read back the same one; infinite ones are Inf and -Inf. NaN and
    None, which are missing numbers, are empty.
    """
    return "\t".join(map(_cell, values)) + "\n"


def beside(own: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a user's columns in a table of ours: "given_" before those that are ours."""
    names: list = []
    for name in given:
        while name in (*own, *names):
            name = f"given_{name}"
        names.append(name)
    return tuple(names)


_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", '"': '""'})


def _cell(value):
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))


def _is_stream(path):
    """Whether it is there and no file, as /dev/stdout: nothing can take its place."""
    return path.exists() and not path.is_file()


def _error(number):
    return OSError(number, os.strerror(number))


@contextlib.contextmanager
def _writing(path, what):
    """UserError for what keeps a file from being written; a full disk says so by itself."""
    try:
        yield
    except BrokenPipeError:  # the reader of /dev/stdout has seen enough
        raise
    except OSError as error:
        if error.errno in temporary_files.FULL:
            raise
        raise UserError(
            f"{what} {path} cannot be written ({error.strerror or error}): give a name in a "
            "folder that is there and can be written to."
        ) from error
