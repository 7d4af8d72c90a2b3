"""The lock of a run's folder, which lets one training at a time write there.

In a folder it is an operating system's lock (`filelock`), which ends with its process, even if that
is killed. Buckets do not have locks: there the training that began last continues, and an earlier
training stops when it finds another owner's file, before it saves again.
"""

import contextlib
import json
import os
import socket
import uuid
from collections.abc import Iterator
from typing import Any

from zoo.base import lazy, regular_files, strict_json, temporary_files
from zoo.errors import ProcessLost, UserError
from zoo.lab.runs import location

FILE, BUCKET_FILE = "training.lock", "training.owner"
# Seconds after which a network file system's server releases the lock of a lost machine.
SILENCE = 120.0


class Ownership:
    """A process's lock of a run's folder, held within a `with` statement."""

    def __init__(self, folder: Any, log=print):
        """Prepares the lock; `log` gets a message if another machine's lock is awaited."""
        self._folder, self._log = folder, log
        self._bucket = location.is_bucket(folder)
        self._path = folder / (BUCKET_FILE if self._bucket else FILE)
        self._record = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "token": uuid.uuid4().hex,
        }
        self._lock: Any = None

    def __enter__(self):
        """Takes the lock and signs its file; raises UserError or ProcessLost if it is held."""
        try:
            if not self._bucket:
                self._lock = _acquire(self._path, self._log)
            with location.convert_errors(self._folder):
                self._path.write_text(json.dumps(self._record))  # over another's
        except OSError as error:
            if error.errno in temporary_files.FULL:
                raise
            raise UserError(
                f"{self._folder} cannot be locked ({error.strerror}): make it writable, or give "
                "another folder."
            ) from error
        return self

    def __exit__(self, *error):
        """Releases the lock, and clears or deletes its file unless another training signed it."""
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
    def guard(self) -> Iterator[None]:
        """Raises UserError unless this process has the lock before and after the context, which
        saves."""
        self._check()
        try:
            with location.convert_errors(self._folder):
                yield
        except Exception as error:  # a deleted folder may raise any
            self._check(error)
            raise
        self._check()

    def _is_own(self):
        """Whether the file names this training."""
        return _read_owner(self._path).get("token") == self._record["token"]

    def _check(self, cause=None):
        """Raises UserError from `cause` if the lock's file is missing or names another process."""
        with location.convert_errors(self._folder):
            owner = _read_owner(self._path)
        if not owner:
            raise UserError(
                f"{self._folder} was deleted or moved, or {self._path.name} in it was, during "
                "training: nothing more is saved; start again with the folder's present name."
            ) from cause
        if owner.get("token") != self._record["token"]:
            raise _refusal(self._folder, owner, "was taken over by") from cause


def check_free(folder: Any):
    """Raises UserError (ProcessLost under a restart of SLURM) if a process trains in a folder,
    without waiting; buckets, which have no locks, and OSErrors pass."""
    path = folder / FILE
    if not location.is_bucket(folder) and path.exists():
        with contextlib.suppress(OSError):  # `Ownership` raises it again, with a reason
            _acquire(path, None).release()


def _acquire(path, log):
    """Takes the lock of the file `path`, unsigned. Unless `log` is None, waits for a lock of
    another machine, which may be lost; raises UserError, or ProcessLost under a restart of
    SLURM."""
    with lazy.extra():
        import filelock

    lock = filelock.FileLock(path, is_singleton=False)
    with contextlib.suppress(filelock.Timeout):
        lock.acquire(timeout=0)
        return lock
    owner = _read_owner(path)
    on_another_host = owner.get("host", socket.gethostname()) != socket.gethostname()
    if on_another_host and log:
        log(
            f"{path.parent} is locked by {_name(owner)}: waiting up to {SILENCE:.0f} s, in which "
            "the lock of a lost machine ends."
        )
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=SILENCE)
            return lock
    refusal = _refusal(path.parent, owner)
    if "SLURM_RESTART_COUNT" in os.environ:  # the task's own orphan, on a node that was cut off
        raise ProcessLost(str(refusal))
    raise refusal


def _refusal(folder, owner, verb="is being trained by"):
    """Returns the UserError for a folder whose lock another process has."""
    return UserError(
        f"{folder} {verb} {_name(owner)}: wait until it has ended, stop it, or give another folder."
    )


def _name(owner):
    """Describes the process that an owner's record names."""
    if not {"process", "host"} <= owner.keys():
        return "another process"
    return f"process {owner['process']} on {owner['host']}"


def _read_owner(path) -> dict:
    """Reads the owner's record from its file; {} if the file is missing or malformed."""
    try:
        return strict_json.object_or_none(regular_files.read_bytes(path)) or {}
    except (FileNotFoundError, NotADirectoryError):
        return {}
