"""Atomic writes: a file is complete or absent, in a folder or in a bucket."""

import contextlib
import errno
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from zoo.base import temporary_files
from zoo.lab.runs import location

# File systems without hard links.
_LINK_ERRORS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write_whole(path: Any, write, place: Callable = pathlib.Path.replace) -> bool:
    """Calls write(temporary path), then place(temporary path, path), so that the file is complete
    or absent after a kill; an object of a bucket is uploaded whole. `place_new` keeps a file that
    exists; in a bucket, another process may write between check and upload. Returns whether the
    file was written."""
    if location.is_bucket(path):
        if place is place_new and path.exists():
            return False
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder, path.name))
            path.write_bytes(pathlib.Path(folder, path.name).read_bytes())
        return True
    with temporary_files.naming(path), temporary_files.new_path(path) as temporary:
        try:
            write(temporary)
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
            is_written = bool(place(temporary, path))
        finally:
            temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # of systems that cannot flush a folder's entries
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return is_written


def write_text(path: Any, text: str):
    """Writes or replaces a file of text in UTF-8 atomically; see `write_whole`."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def place_new(temporary: pathlib.Path, path: pathlib.Path) -> bool:
    """Links (or copies) a temporary file to `path` unless that exists; returns whether it
    succeeded.

    Of several processes, on any machines, exactly one succeeds.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        # A network file system may retry a link whose answer was lost, and find it made.
        return temporary.stat().st_nlink == 2
    except OSError as error:
        if error.errno not in _LINK_ERRORS:
            raise
        try:
            with path.open("xb") as file:
                file.write(temporary.read_bytes())
        except FileExistsError:
            return False
    return True
