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
from zoo.lab.runs import atomic_writes
from zoo.lab.table import tsv_line
from zoo.sources import files

# Files from which a run is read, which must not be overwritten; its results may be.
_RUN_FILES = (
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
    """Prints texts of a report, one a line, with control characters escaped."""
    # Other people's passports, recipes and lexicons may contain sequences that change a terminal.
    print(*(printable(str(text)) for text in texts), sep="\n", flush=True)


def check(file: str | pathlib.Path, label: str = "the table"):
    """Raises UserError if a file cannot be written; writes nothing."""
    path = pathlib.Path(file)
    with _writing(path, label):
        if path.is_dir():
            raise _system_error(errno.EISDIR)
        path.parent.stat()  # raises an OSError that names the cause, if the folder is missing
        if not path.parent.is_dir():
            raise _system_error(errno.ENOTDIR)
        if not os.access(path if _is_stream(path) else path.parent, os.W_OK):
            raise _system_error(errno.EACCES)


def check_each(*outputs: tuple[str | pathlib.Path | None, str], inputs: Iterable[str] = ()):
    """Raises UserError if an output (file or None, label for messages) cannot be written, is named
    twice, or would overwrite a file of the `inputs`."""
    output_paths: set[str] = set()
    sources: set[str] | None = None
    for file, label in outputs:
        if file is None:
            continue
        check(file, label)
        path = os.path.realpath(file)
        if path in output_paths and not _is_stream(pathlib.Path(file)):
            raise UserError(
                f"{file} is named for two outputs, and the second would overwrite the first: give "
                "each a file of its own."
            )
        if os.path.isfile(path):
            if sources is None:
                sources = {source for text in inputs for source in _source_paths(text)}
            if any(path == source or path.startswith(source + os.sep) for source in sources):
                raise UserError(
                    f"{file} is read, and {label} would overwrite it: give {label} another name."
                )
        output_paths.add(path)


def _source_paths(text):
    """Returns the real paths of the files and folders that an input names; of a run, its files and
    those named in its recipe, but not its results."""
    paths = _existing_paths(text)
    for folder in [*paths]:
        recipe = pathlib.Path(folder, _RUN_FILES[0])
        if recipe.is_file():
            paths.remove(folder)
            paths |= {os.path.join(folder, part) for part in _RUN_FILES}
            with contextlib.suppress(UserError):  # the reader of the run raises it again
                for name in permissions.names_in(strict_json.read(recipe)):
                    paths |= {*filter(os.path.isfile, _existing_paths(name))}
    return paths


def _existing_paths(text):
    """Returns the real paths in "PATH", "PATH[1:5]", "PATH,PATH" or "NAME=PATH" that exist."""
    names = {part for name in permissions.names_of(text) for part in (name, *name.split(","))}
    names |= {name.partition("=")[2] for name in names}
    paths = [path for name in names - {""} for path in files.candidates(name)]
    return {os.path.realpath(path) for path in paths if os.path.exists(path)}


def write(
    file: str | pathlib.Path, save: Callable[[pathlib.Path], object], label: str = "the table"
):
    """Calls save(temporary path), then renames that to an output file; a stream such as /dev/stdout
    is written directly. Raises UserError if it cannot be written."""
    path = pathlib.Path(file)
    check(path, label)
    with _writing(path, label):
        if _is_stream(path):
            with temporary_files.naming(path):
                save(path)
        else:
            atomic_writes.write_whole(path, save)


def write_table(file: str | pathlib.Path, columns: Iterable[str], rows: Iterable[tuple]):
    """Writes a table with a header, in the format of `zoo.lab.table.tsv_line`."""
    write_lines(file, map(tsv_line, (columns, *rows)), "the table")


def write_lines(file: str | pathlib.Path, lines: Iterable[str], label: str):
    """Writes lines, each with its line break, to an output file in UTF-8, atomically."""

    def write_all(path):
        """Writes the lines to a temporary file."""
        with open(path, "w", encoding="utf-8", newline="\n") as text:
            text.writelines(lines)

    write(file, write_all, label)


def _is_stream(path):
    """Whether a path is a stream such as /dev/stdout, which is written to and not replaced."""
    return path.exists() and not path.is_file()


def _system_error(number):
    """Returns an OSError with the system's message for an error number."""
    return OSError(number, os.strerror(number))


@contextlib.contextmanager
def _writing(path, label):
    """Converts errors of the system, raised within the context, to a UserError; a full disk and a
    closed pipe are raised as they are."""
    try:
        yield
    except BrokenPipeError:  # the reader of /dev/stdout has seen enough
        raise
    except OSError as error:
        if error.errno in temporary_files.FULL:
            raise
        raise UserError(
            f"{label} {path} cannot be written ({error.strerror or error}): give a name in a "
            "folder that exists and can be written to."
        ) from error
