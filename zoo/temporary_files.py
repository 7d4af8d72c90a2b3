"""Files and folders that are not whole yet, each named after the process that makes it.

What is to become PATH is `.NAME.PROCESS.partial` beside it until it is renamed. A process that is
killed leaves it there; the next one that makes the same path removes it, once its maker is dead.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import re
import shutil
import time
import uuid
from collections.abc import Iterator

from zoo import process_ids
from zoo.errors import UserError

# What keeps a file from growing, and what to do: a disk without room, a user's share of it that is
# used up, a limit of the process or of the file system on the size of a file.
FULL = {
    errno.ENOSPC: ("the disk is full", "make room"),
    errno.EDQUOT: ("the user's share of the disk is used up", "make room"),
    errno.EFBIG: ("a file would be larger than is allowed", "raise the limit (ulimit -f)"),
}
_SUFFIX = ".partial"
_MADE_BY = re.compile(r"(?P<pid>\d+)-(?P<began>\d*)-(?P<where>[0-9a-f]{8})-[0-9a-f]{8}")
# Seconds without a change until the work of a process on another machine, or from before this
# machine's start, is left over. Clocks of machines differ by less.
FORGOTTEN = 24 * 3600.0


def place(path: pathlib.Path) -> pathlib.Path:
    """A place beside a path, of a name of its own, for this process to make what is to be there."""
    made_by = (
        f"{os.getpid()}-{process_ids.began(os.getpid()) or ''}-{_where()}-{uuid.uuid4().hex[:8]}"
    )
    return path.with_name(f".{path.name}.{made_by}{_SUFFIX}")


def is_of(path: pathlib.Path, whole: pathlib.Path) -> bool:
    """Whether a path is `place(whole)` in any process."""
    return _made_by(path, whole) is not None


def clear(whole: pathlib.Path):
    """Removes what processes that are dead left of a path beside it, as far as that can be."""
    beside: list[pathlib.Path] = []
    with contextlib.suppress(OSError):  # a folder that may be written to, and not listed
        beside += whole.parent.iterdir()
    for path in beside:
        made_by = _made_by(path, whole)
        with contextlib.suppress(OSError):  # another process removes it, too
            if made_by is not None and _is_left(path, made_by):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def folder(out: str | pathlib.Path, replace: bool = False) -> Iterator[pathlib.Path]:
    """A new folder to write to, which becomes `out` as the context ends, and is removed on failure.

    Args:
      out: the folder to make; nothing may be there but an empty folder.
      replace: whether a folder that is there gives way instead.

    Raises:
      UserError: something is at `out`, at the beginning or at the end, or it cannot be made.
    """
    if "://" in str(out):  # a path has one slash where an address has two
        raise UserError(f"{out} is not a folder of this machine: give the path of one.")
    out = pathlib.Path(out)
    with _making(out):
        if not replace and not _is_free(out):
            raise UserError(f"{out} is there already: give a folder that is yet to be made.")
        check_place(out)
        made = [above for above in out.parents if not above.exists()]
        out.parent.mkdir(parents=True, exist_ok=True)
        clear(out)
        own = place(out)
        own.mkdir()
    try:
        with naming(out):
            yield own
        with _making(out):
            if replace:
                shutil.rmtree(out, ignore_errors=True)
            elif not _is_free(out):
                raise UserError(
                    f"{out} was made by another process just now: look at it, or give another "
                    "folder."
                )
            own.replace(out)
    finally:
        shutil.rmtree(own, ignore_errors=True)
        for above in made:
            with contextlib.suppress(OSError):  # it has something in it
                above.rmdir()


def check_place(path: pathlib.Path, instead: str = "another folder"):
    """UserError if a file or folder cannot be made for the sake of what is above it; OSError if its
    path cannot be looked up."""
    whole = path.absolute()
    above = next(above for above in whole.parents if above.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        reason = "may not be written to" if above.is_dir() else "is a file"
        raise UserError(f"{path} cannot be made ({above} {reason}): give {instead}.")


@contextlib.contextmanager
def _making(out):
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: of a zero character
        if isinstance(error, OSError) and error.errno in FULL:
            error.filename = str(out)
            raise
        why = getattr(error, "strerror", None) or error
        raise UserError(f"{out} cannot be made ({why}): give another folder.") from error


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]):
    """Around the writing of a file or folder: the error of a full disk names it. By itself that of
    a write names nothing, and that of a copy a file that will not be there."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            error.filename = str(path)
        raise


def _is_free(out) -> bool:
    """Whether a folder can be made at a path: nothing is there, or an empty folder."""
    return not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir()))


def _made_by(path, whole):
    """The match of the process in a path's name; None if it is no place of `whole`."""
    name, before = path.name, f".{whole.name}."
    if not (name.startswith(before) and name.endswith(_SUFFIX)):
        return None
    return _MADE_BY.fullmatch(name[len(before) : -len(_SUFFIX)])


def _is_left(path, made_by) -> bool:
    """Whether the process that made a path is dead."""
    if made_by["where"] == _where():
        process = process_ids.this_process() | {
            "pid": int(made_by["pid"]),
            "began": made_by["began"],
        }
        lives = process_ids.lives(process)
        if lives is not None:
            return not lives
    newest = max(one.lstat().st_mtime for one in (path, *path.rglob("*")))
    return time.time() - newest > FORGOTTEN


def _where() -> str:
    """A digest of `process_ids.place` of this process, for names."""
    return hashlib.sha256(repr(process_ids.place(process_ids.this_process())).encode()).hexdigest()[
        :8
    ]
