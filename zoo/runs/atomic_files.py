"""Atomic writes: a file is complete or absent, in a folder or in a bucket (`zoo.runs.location`)."""

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
    """Writes a file that is complete or absent after a kill, a full disk or a power loss."""
    if location.is_bucket(path):
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder, path.name))
            path.write_bytes(pathlib.Path(folder, path.name).read_bytes())
        return
    with _finished(path, write) as own:
        own.replace(path)


def write_text(path: Any, text: str):
    """Writes a file of text in UTF-8 atomically; see `write_whole`."""
    write_whole(path, lambda own: own.write_text(text, encoding="utf-8"))


def write_new(path: Any, write) -> bool:
    """Writes a new file atomically, unless the file exists.

    In a bucket two processes at the same moment may both write: see `zoo.runs.training_lock`.
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
    """Writes a temporary file beside `path`, yields it to be renamed, and removes it if left."""
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
    """Whether the file `own` could be linked to `path`, where no file was.

    Of several processes, on any machines, exactly one succeeds.
    """
    try:
        os.link(own, path)
    except FileExistsError:
        # A network file system may retry a link whose answer was lost, and find it made.
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
    """Synchronises a folder's entries to the disk, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(path: Any):
    """Checks that a folder or file, if it exists, can be written to."""
    if location.is_bucket(path):  # rights in a bucket show only on writing
        return
    # Not by pathlib, which raises an error for a name that is too long.
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written to: make it writable or give another folder.")
