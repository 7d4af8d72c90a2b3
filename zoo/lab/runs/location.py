"""The location of a run's folder: on a local disk, a network file system, or in a bucket.

A bucket's address, gs://BUCKET/RUN, becomes a path of `etils.epath`, which has pathlib's methods
over gcsfs. Orbax writes checkpoints there itself. An object of a bucket is complete or absent, and
cannot be appended to.
"""

import contextlib
import errno
import json
import logging
import os
import pathlib
import re
import socket
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any

from zoo.base import lazy, regular_files, strict_json, temporary_files
from zoo.base.temporary_files import naming
from zoo.base.trust import permissions
from zoo.errors import UserError, shortened

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_BUCKET = "gs://"


def is_address(path: str) -> bool:
    """Whether a text is an address with any scheme, such as gs://, rather than a path."""
    return _SCHEME.match(path) is not None


def is_bucket(path: Any) -> bool:
    """Whether a path is the address of a bucket."""
    return str(path).startswith(_BUCKET)


def path_of(folder: Any) -> Any:
    """Returns the path of a run's folder."""
    text = str(folder)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return pathlib.Path(folder)
    if scheme[0] == "file://":
        raise UserError(f"{text} is an address: give the path of a folder, without file://.")
    if scheme[0] != _BUCKET:
        raise UserError(
            f"{shortened(text)}: a run lies in a folder or in a bucket of Google Cloud Storage: "
            "give a path, or gs://BUCKET/RUN."
        )
    name = text.removesuffix("/")
    if permissions.leads_out(name.removeprefix(_BUCKET)):
        raise UserError(
            f"{shortened(text)} is not an address of a run: give a bucket and names with one slash "
            "between them, without . and .., as in gs://BUCKET/RUN."
        )
    with lazy.extra():
        import gcsfs  # noqa: F401  # epath imports it when the first object is read
        from etils import epath
    # It logs a traceback for each retry; the last error is raised.
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)
    return epath.Path(name)


def absolute(path: Any) -> Any:
    """Returns an absolute path; an address is unchanged, where epath would take gs: for a name."""
    return path if is_bucket(path) else path.absolute()


def identity(folder: Any) -> str:
    """Returns a text that is the same for all ways to write the path of a folder."""
    return str(path_of(folder)) if is_bucket(folder) else os.path.realpath(folder)


@contextlib.contextmanager
def reaching(path: Any) -> Iterator[None]:
    """Raises UserError where a bucket cannot be read or written in its context."""
    try:
        yield
    except (UserError, FileNotFoundError):
        raise
    except Exception as error:  # gcsfs, tensorstore and Google's packages have many
        full = isinstance(error, OSError) and error.errno in temporary_files.FULL
        if full or not is_bucket(path):
            raise
        text = " ".join(str(error).split())[:300]
        raise UserError(
            f"{path} cannot be reached ({type(error).__name__}: {text}): check its name, your "
            "rights and the network."
        ) from error


def fetch(address: str, out: str | pathlib.Path) -> pathlib.Path:
    """Copies the run in a bucket into a new folder, which is complete or absent."""
    source = path_of(address)
    with temporary_files.folder(out) as folder, reaching(source):
        names = _names(source)
        if "experiment.json" not in names:
            raise UserError(f"{source} does not hold a run: give the address of a run.")
        for name in names:
            content = (source / name).read_bytes()
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            except (OSError, ValueError) as error:  # ValueError: a zero character, half a pair
                if getattr(error, "errno", None) in temporary_files.FULL:
                    raise
                why = getattr(error, "strerror", None) or error
                raise UserError(
                    f"{source} has an object called {shortened(name)!r}, which cannot be a file of "
                    f"this machine ({why}): delete or rename that object."
                ) from error
    return pathlib.Path(out)


def _names(folder) -> list[str]:
    """Returns the names of all objects below an address; UserError for one that `leads_out`."""
    with lazy.extra():
        import gcsfs

    above = str(folder).removeprefix(_BUCKET) + "/"
    names = [name.removeprefix(above) for name in gcsfs.GCSFileSystem().find(str(folder))]
    permissions.check_remote(names, str(folder))
    return names


# -------------------------------------- the lock of a run's folder: one training at a time
# In a folder it is an operating system's lock (`filelock`), which ends with its process, even if
# that is killed. Buckets do not have locks: there the training that began last continues, and an
# earlier training stops when it finds another owner's file, before it saves again.

FILE, BUCKET_FILE = "training.lock", "training.owner"
# Seconds after which a network file system's server releases the lock of a lost machine.
SILENCE = 120.0


class Ownership:
    """A process's lock of a run's folder, held within a `with` statement."""

    def __init__(self, folder: Any, log=print):
        self._folder, self._log = folder, log
        self._bucket = is_bucket(folder)
        self._path = folder / (BUCKET_FILE if self._bucket else FILE)
        self._record = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "token": uuid.uuid4().hex,
        }
        self._lock: Any = None

    def __enter__(self):
        if self._bucket:
            self._sign()
            return self
        try:
            self._lock = _acquired(self._path, self._log)
            self._sign()
        except OSError as error:
            if error.errno in temporary_files.FULL:
                raise
            raise UserError(
                f"{self._folder} cannot be locked ({error.strerror}): make it writable, or give "
                "another folder."
            ) from error
        return self

    def __exit__(self, *error):
        if self._lock is not None:
            with contextlib.suppress(OSError):  # the folder was deleted
                if self._is_own():
                    os.truncate(self._path, 0)  # it names nobody now
            self._lock.release()
        else:
            with contextlib.suppress(Exception):  # an error that ended the training matters more
                if self._is_own():
                    self._path.unlink()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Checks, before and after a checkpoint is saved in its context, that the lock is held."""
        self._check()
        try:
            with reaching(self._folder):
                yield
        except Exception as error:  # a deleted folder may raise any
            self._check(error)
            raise
        self._check()

    def _is_own(self):
        """Whether the file names this training."""
        return _owner(self._path).get("token") == self._record["token"]

    def _sign(self):
        with reaching(self._folder):
            self._path.write_text(json.dumps(self._record))

    def _check(self, cause=None):
        with reaching(self._folder):
            owner = _owner(self._path)
        if not owner:
            raise UserError(
                f"{self._folder} was deleted or moved, or {self._path.name} in it was, during "
                "training: nothing more is saved; start again with the folder's present name."
            ) from cause
        if owner.get("token") != self._record["token"]:
            raise _held(self._folder, owner, "was taken over by") from cause


def check_free(folder: Any):
    """Checks, without waiting, that no process of this machine trains in a folder."""
    path = folder / FILE
    if not is_bucket(folder) and path.exists():
        with contextlib.suppress(OSError):  # `Ownership` raises it again, with a reason
            _acquired(path, None).release()


def _acquired(path, log):
    with lazy.extra():
        import filelock

    lock = filelock.FileLock(path, is_singleton=False)
    with contextlib.suppress(filelock.Timeout):
        lock.acquire(timeout=0)
        return lock
    owner = _owner(path)
    elsewhere = owner.get("host", socket.gethostname()) != socket.gethostname()
    if elsewhere and log:
        log(
            f"{path.parent} is locked by {_named(owner)}: waiting up to {SILENCE:.0f} s, in which "
            "the lock of a lost machine ends."
        )
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=SILENCE)
            return lock
    raise _held(path.parent, owner)


def _held(folder, owner, how="is being trained by"):
    return UserError(
        f"{folder} {how} {_named(owner)}: wait until it has ended, stop it, or give another folder."
    )


def _named(owner):
    if not {"process", "host"} <= owner.keys():
        return "another process"
    return f"process {owner['process']} on {owner['host']}"


def _owner(path) -> dict:
    """Reads the owner's record from its file; {} if the file is missing or malformed."""
    try:
        return strict_json.object_or_none(regular_files.read_bytes(path)) or {}
    except (FileNotFoundError, NotADirectoryError):
        return {}


# ---------------- atomic writes: a file is complete or absent, in a folder or in a bucket

# File systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write_whole(path: Any, write):
    """Writes a file that is complete or absent after a kill, a full disk or a power loss."""
    if is_bucket(path):
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
    """Writes a new file atomically, unless the file exists."""
    if is_bucket(path):
        if path.exists():
            return False
        write_whole(path, write)
        return True
    with _finished(path, write) as own:
        return place_new(own, path)


@contextlib.contextmanager
def _finished(path, write):
    """Writes a temporary file beside `path`, yields it to be renamed, and removes it if left."""
    with naming(path), temporary_files.made(path) as own:
        try:
            write(own)
            with own.open("r+b") as file:
                os.fsync(file.fileno())
            yield own
        finally:
            own.unlink(missing_ok=True)
    _keep_names(path.parent)


def place_new(own: pathlib.Path, path: pathlib.Path) -> bool:
    """Whether the file `own` could be linked to `path`, where no file was; of several processes, on
    any machines, exactly one succeeds."""
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
    if is_bucket(path):  # rights in a bucket show only on writing
        return
    # Not by pathlib, which raises an error for a name that is too long.
    if regular_files.is_irregular(path):
        raise UserError(f"{path} is not a regular file: remove it or give another folder.")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written to: make it writable or give another folder.")
