"""Files that are there whole or not at all."""

import errno
import pathlib

# A disk without room, and a user's share of it used up.
FULL = (errno.ENOSPC, errno.EDQUOT)


def write_whole(path: pathlib.Path, write):
    """write(path), so that after a kill or on a full disk the file is there whole or not at all."""
    partial = path.with_name(f"partial-{path.name}")
    try:
        write(partial)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
