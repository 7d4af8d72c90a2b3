"""Reading of files whose names are found in a folder that may come from somebody else.

A pipe there would keep its reader waiting for ever, and a device such as /dev/zero would never end.
"""

import io
import os
import stat
from typing import Any


def is_irregular(path: Any) -> bool:
    """Whether a pipe, a socket or a device is at a path."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def open_regular(path: Any) -> Any:
    """Opens a file, or an object of a bucket, to read its bytes; OSError if it is not regular."""
    if "://" in str(path):
        return path.open("rb")
    return open(path, "rb", opener=_open)


def read_bytes(path: Any) -> bytes:
    with open_regular(path) as file:
        return file.read()


def read_text(path: Any) -> str:
    """Reads a text in UTF-8, with the universal newlines of `pathlib.Path.read_text`."""
    return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding="utf-8").read()


def _open(path, flags) -> int:
    """Opens a descriptor, without waiting for the other end of a pipe."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # `open` refuses a folder by its own error
        return descriptor
    os.close(descriptor)
    raise OSError(f"{os.path.basename(path)} is not a regular file")
