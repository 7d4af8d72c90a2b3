"""Reading of files whose names are found in a folder that may come from somebody else.

A pipe there would keep its reader waiting for ever, and a device such as /dev/zero would never end.
Git LFS leaves a pointer, three lines of text, in place of a file that it has not fetched.
"""

import io
import os
import stat
from typing import Any

# The first bytes of a Git LFS pointer, and its description in messages.
LFS = b"version https://git-lfs.github.com/spec/"
LFS_POINTER = "is a Git LFS pointer, which git lfs pull replaces by the file"


def is_irregular(path: Any) -> bool:
    """Whether a pipe, a socket or a device is at a path."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def open_regular(path: Any) -> Any:
    """Opens a file, or an object of a bucket, to read its bytes; OSError if it is not regular, or
    is a Git LFS pointer."""
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
    is_pointer = stat.S_ISREG(mode) and os.pread(descriptor, len(LFS), 0) == LFS
    if stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not is_pointer):
        return descriptor  # of a folder, too, which `open` refuses by its own error
    os.close(descriptor)
    reason = LFS_POINTER if is_pointer else "is not a regular file"
    raise OSError(f"{os.path.basename(path)} {reason}")
