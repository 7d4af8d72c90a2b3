"""Files that are there whole or not at all."""

import errno
import os
import pathlib

# A disk without room, and a user's share of it used up.
FULL = (errno.ENOSPC, errno.EDQUOT)
_PARTIAL = ".partial"


def partial(path: pathlib.Path) -> pathlib.Path:
    """Where this process's `write_whole` writes before the file is whole; a kill may leave it."""
    return path.with_name(f"{path.name}.{os.getpid()}{_PARTIAL}")


def is_partial(path: pathlib.Path, whole: pathlib.Path) -> bool:
    """Whether a path is that of `whole` before it is whole, in whichever process."""
    return path.name.startswith(f"{whole.name}.") and path.suffix == _PARTIAL


def write_whole(path: pathlib.Path, write):
    """write(path), so that after a kill or on a full disk the file is there whole or not at all."""
    unfinished = partial(path)
    try:
        write(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
