"""Files that are there whole or not at all."""

import errno
import pathlib

# A disk without room, and a user's share of it used up.
FULL = (errno.ENOSPC, errno.EDQUOT)


def partial(path: pathlib.Path) -> pathlib.Path:
    """Where `write_whole` writes before the file is whole; a kill may leave it there."""
    return path.with_name(f"partial-{path.name}")


def write_whole(path: pathlib.Path, write):
    """write(path), so that after a kill or on a full disk the file is there whole or not at all."""
    unfinished = partial(path)
    try:
        write(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
