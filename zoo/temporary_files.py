"""Temporary files and folders that are renamed when complete, named after their process.

While PATH is written, it is called `.NAME.PROCESS.partial` in the same folder, until it is renamed.
A process that is killed leaves it there; the next process that writes the same path removes it,
once the first is dead.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import re
import shutil
import socket
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
_SUFFIX = ".partial"
_MADE_BY = re.compile(r"(?P<pid>\d+)-(?P<began>\d*)-(?P<where>[0-9a-f]{8})-[0-9a-f]{8}")
# Seconds without a change after which a temporary file counts as abandoned if its process cannot be
# looked up, being of another machine or from before this machine's start. Clocks differ by less.
FORGOTTEN = 24 * 3600.0


def place(path: pathlib.Path) -> pathlib.Path:
    """Returns a unique temporary path in the same folder, to be renamed to a path later."""
    made_by = f"{os.getpid()}-{began(os.getpid()) or ''}-{_where()}-{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{path.name}.{made_by}{_SUFFIX}")


def is_of(path: pathlib.Path, whole: pathlib.Path) -> bool:
    """Whether a path is a temporary path `place(whole)` of any process."""
    return _made_by(path, whole) is not None


def clear(whole: pathlib.Path):
    """Removes the temporary files that dead processes left of a path; ignores failures."""
    beside: list[pathlib.Path] = []
    with contextlib.suppress(OSError):  # a folder that may be written to, and not listed
        beside += whole.parent.iterdir()
    for path in beside:
        made_by = _made_by(path, whole)
        with contextlib.suppress(OSError):  # another process may remove it, too
            if made_by is not None and _is_left(path, made_by):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def folder(out: str | pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder, which is renamed to `out` at the end, or removed on failure."""
    if "://" in str(out):  # a path has one slash where an address has two
        raise UserError(f"{out} is not a folder of this machine: give the path of one.")
    out = pathlib.Path(out)
    with _making(out):
        if not _is_free(out):
            raise UserError(f"{out} exists already: give a folder that does not exist yet.")
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
            if not _is_free(out):
                raise UserError(
                    f"{out} has just been made by another process: look at it, or give another "
                    "folder."
                )
            own.replace(out)
    finally:
        shutil.rmtree(own, ignore_errors=True)
        for above in made:
            with contextlib.suppress(OSError):  # it is not empty
                above.rmdir()


def check_place(path: pathlib.Path, instead: str = "another folder"):
    """Checks that a file or folder can be made in the folders above it."""
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
    """Puts the name of a file or folder that is written into errors of a full disk.

    Without it, the error of a write does not name a file, and the error of a copy names a temporary
    file.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            error.filename = str(path)
        raise


def _is_free(out) -> bool:
    """Whether a folder can be made at a path: nothing exists there, or an empty folder."""
    return not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir()))


def _made_by(path, whole):
    """Matches the process in the name of a temporary path of `whole`; None for other paths."""
    name, before = path.name, f".{whole.name}."
    if not (name.startswith(before) and name.endswith(_SUFFIX)):
        return None
    return _MADE_BY.fullmatch(name[len(before) : -len(_SUFFIX)])


def _is_left(path, made_by) -> bool:
    """Whether the process that made a path is dead."""
    if made_by["where"] == _where():
        process = this_process() | {
            "pid": int(made_by["pid"]),
            "began": made_by["began"],
        }
        alive = lives(process)
        if alive is not None:
            return not alive
    newest = max(one.lstat().st_mtime for one in (path, *path.rglob("*")))
    return time.time() - newest > FORGOTTEN


def _where() -> str:
    """Hashes `process_ids.place` of this process, for names of temporary files."""
    return hashlib.sha256(repr(process_place(this_process())).encode()).hexdigest()[:8]


# ---- identities of processes, over machines and restarts, and whether a process still runs


def this_process() -> dict:
    """Returns a record that identifies this process; values are "" where the system lacks them."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": began(os.getpid()) or "",
        # Process numbers are unique only since the start of one machine, and in one container.
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "namespace": _link("/proc/self/ns/pid"),
    }


def lives(process: dict) -> bool | None:
    """Whether a process still runs."""
    here = this_process()
    if process_place(process) != process_place(here):
        return None
    pid = process.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        pass
    start = began(pid)
    if start is None:
        return False  # a zombie
    return start == process.get("began") if start else None


def process_place(process: dict) -> tuple:
    """Returns the scope in which a process number is unique: a machine's start and a container."""
    boot = process.get("boot")
    return (boot, process.get("namespace")) if boot else (process.get("host"), boot)


def began(pid: int) -> str | None:
    """Returns the start time of a process, in ticks since the machine's start."""
    # The program's name, in brackets, may itself have spaces and brackets.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 20:
        return ""
    return None if fields[0] in "ZX" else fields[19]


def _text(path) -> str:
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
