"""Files that are there whole or not at all."""

import contextlib
import errno
import json
import os
import pathlib

from zoo.errors import UserError

# A disk without room, and a user's share of it used up.
FULL = (errno.ENOSPC, errno.EDQUOT)
# The suffix of files that are not whole yet.
PARTIAL = ".partial"


def partial(path: pathlib.Path) -> pathlib.Path:
    """Where this process's `write_whole` writes before the file is whole; a kill may leave it."""
    return path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")


def is_partial(path: pathlib.Path, whole: pathlib.Path) -> bool:
    """Whether a path is that of `whole` before it is whole, in whichever process."""
    return path.name.startswith(f"{whole.name}.") and path.suffix == PARTIAL


def write_whole(path: pathlib.Path, write):
    """write(path), so that the file is there whole or not at all: after a kill, on a full disk, or
    when the machine loses its power."""
    unfinished = partial(path)
    try:
        write(unfinished)
        with unfinished.open("r+b") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _keep_names(path.parent)


def _keep_names(folder):
    """Has the disk keep the names in a folder, where the system can do it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(path: pathlib.Path):
    """UserError if a folder or file that is there cannot be written to."""
    if path.exists() and not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written to: make it writable or give another folder.")


def read_object(path: pathlib.Path) -> dict:
    """The JSON object of a file; UserError, which names the file, for anything else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON ({error}): put back a copy of it.") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object: put back a copy of it.")
    return value
