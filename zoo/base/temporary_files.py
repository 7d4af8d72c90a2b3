"""Temporary files and folders that are renamed when complete, and locked by their process.

While PATH is written, it is called `.NAME.RANDOM.partial` in the same folder, until it is renamed.
A process that is killed leaves it there; the system ends its lock, and the next process that writes
the same path removes it.
"""

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import shutil
import time
import uuid
from collections.abc import Iterator

from zoo.errors import UserError

# {error of a file that cannot grow: (its name, its remedy)}.
FULL = {
    errno.ENOSPC: ("the disk is full", "make room"),
    errno.EDQUOT: ("the user's share of the disk is used up", "make room"),
    errno.EFBIG: ("a file would be larger than is allowed", "raise the limit (ulimit -f)"),
}
_END = re.compile(r"[0-9a-f]{32}\.(partial|unlocked)")
# Seconds without a change after which a temporary file counts as abandoned that is not locked yet,
# or on a file system that does not tell locks, as over a network. Clocks differ by less.
FORGOTTEN = 24 * 3600.0


def belongs_to(path: pathlib.Path, target: pathlib.Path) -> bool:
    """Whether a path is a temporary path of `target`, of any process."""
    prefix = f".{target.name}."
    return path.name.startswith(prefix) and bool(_END.fullmatch(path.name[len(prefix) :]))


def clear(target: pathlib.Path):
    """Removes the temporary files that dead processes left of a path; ignores failures."""
    beside: list[pathlib.Path] = []
    with contextlib.suppress(OSError):  # a folder that may be written to, and not listed
        beside += target.parent.iterdir()
    for path in beside:
        with contextlib.suppress(OSError):  # another process may remove it, too
            if belongs_to(path, target) and _is_abandoned(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_abandoned(path) -> bool:
    """Whether the process that made a path is dead."""
    if path.suffix == ".partial":
        with contextlib.suppress(OSError), _locked(path):
            return True
    newest = max(entry.lstat().st_mtime for entry in (path, *path.rglob("*")))
    return time.time() - newest > FORGOTTEN


@contextlib.contextmanager
def _locked(path) -> Iterator[None]:
    """Holds the lock of a file or folder; OSError if another process does, or if there is none."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def new_path(target: pathlib.Path, make=pathlib.Path.touch) -> Iterator[pathlib.Path]:
    """Yields a new temporary path of `target`, to be renamed, whose lock is held in its context."""
    clear(target)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    unlocked = temporary.with_suffix(".unlocked")  # so that no other process finds it free before
    make(unlocked)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a file system without locks
            stack.enter_context(_locked(unlocked))
        unlocked.rename(temporary)
        yield temporary


@contextlib.contextmanager
def folder(out: str | pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder, which is renamed to `out` at the end, or removed on failure."""
    if "://" in str(out):  # a path has one slash where an address has two
        raise UserError(f"{out} is not a folder of this machine: give the path of one.")
    out = pathlib.Path(out)
    with contextlib.ExitStack() as stack:
        with _making(out):
            if not _is_free(out):
                raise UserError(f"{out} exists already: give a folder that does not exist yet.")
            check_place(out)
            above = [above for above in out.parents if not above.exists()]
            out.parent.mkdir(parents=True, exist_ok=True)
            stack.callback(_remove_empty, above)
            temporary = stack.enter_context(new_path(out, pathlib.Path.mkdir))
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        with naming(out):
            yield temporary
        with _making(out):
            if not _is_free(out):
                raise UserError(
                    f"{out} has just been made by another process: look at it, or give another "
                    "folder."
                )
            temporary.replace(out)


def _remove_empty(folders):
    for folder in folders:
        with contextlib.suppress(OSError):  # it is not empty
            folder.rmdir()


def check_place(path: pathlib.Path, instead: str = "another folder"):
    """Checks that a file or folder can be made in the folders above it."""
    target = path.absolute()
    above = next(above for above in target.parents if above.exists())
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
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{out} cannot be made ({reason}): give another folder.") from error


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]):
    """Puts the name of a file or folder that is written into errors of a full disk, which otherwise
    name none, or a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            error.filename = str(path)
        raise


def _is_free(out) -> bool:
    """Whether a folder can be made at a path: nothing exists there, or an empty folder."""
    return not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir()))
