"""Files that are there whole or not at all."""

import contextlib
import errno
import os
import pathlib
import uuid

from zoo.errors import UserError

# What keeps a file from growing, and what to do: a disk without room, a user's share of it that is
# used up, a limit of the process or of the file system on the size of a file.
FULL = {
    errno.ENOSPC: ("the disk is full", "make room"),
    errno.EDQUOT: ("the user's share of the disk is used up", "make room"),
    errno.EFBIG: ("a file would be larger than is allowed", "raise the limit (ulimit -f)"),
}
# File systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# The suffix of files that are not whole yet.
_PARTIAL = ".partial"


def partial(path: pathlib.Path) -> pathlib.Path:
    """A place to write a file to before it is whole, of a name of its own; a kill may leave it."""
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}{_PARTIAL}")


def is_partial(path: pathlib.Path, whole: pathlib.Path) -> bool:
    """Whether a path is that of `whole` before it is whole, in whichever process."""
    return path.name.startswith(f"{whole.name}.") and path.suffix == _PARTIAL


def write_whole(path: pathlib.Path, write):
    """write(path), so that the file is there whole or not at all: after a kill, on a full disk, or
    when the machine loses its power."""
    with _finished(path, write) as unfinished:
        unfinished.replace(path)


def write_new(path: pathlib.Path, write) -> bool:
    """`write_whole` where no file is; False, and nothing written, if another process was first."""
    with _finished(path, write) as unfinished:
        return place_new(unfinished, path)


@contextlib.contextmanager
def _finished(path, write):
    """The file beside `path` that was written, on the disk, until it has another name."""
    unfinished = partial(path)
    try:
        with naming(path):
            write(unfinished)
            with unfinished.open("r+b") as file:
                os.fsync(file.fileno())
            yield unfinished
    finally:
        unfinished.unlink(missing_ok=True)
    _keep_names(path.parent)


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]):
    """Around the writing of a file or folder: the error of a full disk names it. By itself that of
    a write names nothing, and that of a copy a file that will not be there."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def making(folder: pathlib.Path):
    """Around the making of a folder that is given its name when it is whole; see `naming`.

    Raises:
      UserError: another process has made a folder of this name meanwhile.
    """
    try:
        with naming(folder):
            yield
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        raise UserError(
            f"{folder} was made by another process just now: look at it, or give another folder."
        ) from error


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


def check_writable(path: pathlib.Path):
    """UserError if a folder or file that is there cannot be written to."""
    if path.exists() and not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written to: make it writable or give another folder.")
