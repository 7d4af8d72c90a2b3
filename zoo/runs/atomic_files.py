"""Files that are there whole or not at all, in a folder or in a bucket (`zoo.runs.location`)."""

import contextlib
import errno
import os
import pathlib
import tempfile
from typing import Any

from zoo import temporary_files
from zoo.errors import UserError
from zoo.runs import location
from zoo.temporary_files import naming

# File systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write_whole(path: Any, write):
    """write(path), so that the file is there whole or not at all: after a kill, on a full disk, or
    when the machine loses its power."""
    if location.is_bucket(path):
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder, path.name))
            path.write_bytes(pathlib.Path(folder, path.name).read_bytes())
        return
    with _finished(path, write) as own:
        own.replace(path)


def write_new(path: Any, write) -> bool:
    """`write_whole` where no file is; False, and nothing written, if another process was first.

    In a bucket two processes at the same moment may both write: see `zoo.runs.ownership`.
    """
    if location.is_bucket(path):
        if path.exists():
            return False
        write_whole(path, write)
        return True
    with _finished(path, write) as own:
        return place_new(own, path)


@contextlib.contextmanager
def _finished(path, write):
    """The file beside `path` that was written, on the disk, until it has another name."""
    temporary_files.clear(path)
    own = temporary_files.place(path)
    try:
        with naming(path):
            write(own)
            with own.open("r+b") as file:
                os.fsync(file.fileno())
            yield own
    finally:
        own.unlink(missing_ok=True)
    _keep_names(path.parent)


def place_new(own: pathlib.Path, path: pathlib.Path) -> bool:
    """Whether the file `own` now is at `path` as well, where none was: of several processes, on
    whichever machines, one alone succeeds."""
    try:
        os.link(own, path)
    except FileExistsError:
        # An answer that a network lost is asked for again, and then the link is there.
        return own.stat().st_nlink == 2
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            with path.open("xb") as file:
                file.write(own.read_bytes())
        except FileExistsError:
            return False
    return True


def _keep_names(folder):
    """Has the disk keep the names in a folder, where the system can do it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(path: Any):
    """UserError if a folder or file that is there cannot be written to."""
    if location.is_bucket(path):  # only writing tells
        return
    # Not by pathlib, which raises an error for a name that is too long.
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written to: make it writable or give another folder.")
