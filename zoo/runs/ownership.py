"""Who trains in a work directory: one process at a time, on whichever machine.

The owner keeps a file there that names it, and touches the file every few seconds. A process that
was killed leaves the file behind; what is dead owns nothing:

- On the same machine the system tells whether the process still runs: its number, and when it
  began, for numbers are given again.
- On another one, or in another container, an owner is believed to live as long as the file's time
  goes on. Clocks differ: times are compared only if the same file server gave both.

Whoever takes a folder over replaces the file, and an owner looks whether it is still its own
whenever it saves. So an owner that only seemed dead, such as a machine that slept, writes no more,
and neither does one whose folder was deleted or moved.
"""

import contextlib
import errno
import json
import os
import pathlib
import threading
import time
import uuid

from zoo import alive, strict_json, unfinished
from zoo.errors import UserError
from zoo.runs import storage

FILE = "training.lock"
# Seconds from one sign of life to the next, and without any until an owner counts as dead.
BEAT, SILENCE = 15.0, 120.0
# Seconds in which another process that takes the same folder over at the same time has done so.
_SETTLED = 0.1


def check_free(folder: pathlib.Path):
    """UserError if a process that certainly lives trains in the folder; waits for none."""
    owner, _ = _read(folder / FILE)
    if owner is not None and alive.lives(owner):
        raise _held(folder, owner)


class Ownership:
    """A process's ownership of a folder, from `with` to its end."""

    def __init__(self, folder: pathlib.Path, log=print):
        """Names the folder, which is there; `log` is told of a wait."""
        self._folder, self._log = folder.absolute(), log
        self._path = self._folder / FILE
        self._record = alive.this_process() | {"token": uuid.uuid4().hex}
        self._ended = threading.Event()

    def __enter__(self):
        """Takes the folder, or raises UserError: it is another's, or cannot be written to."""
        try:
            self._take()
        except OSError as error:
            if error.errno in unfinished.FULL:
                raise
            raise UserError(
                f"{self._folder} cannot be written to ({error.strerror}): make it writable or "
                "give another folder."
            ) from error
        threading.Thread(target=self._beat, name="ownership", daemon=True).start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        with contextlib.suppress(OSError):
            if self._is_ours():
                self._path.unlink()

    @contextlib.contextmanager
    def kept(self):
        """Around whatever is saved: UserError if the folder is not, or is no longer, this one's."""
        self._check()
        try:
            yield
        except Exception as error:  # of whatever kind, if the folder has gone meanwhile
            self._check(error)
            raise
        self._check()

    def _check(self, cause=None):
        owner, _ = _read(self._path)
        if owner is None:
            raise UserError(
                f"{self._folder} was deleted or moved, or {FILE} in it was, while this run "
                "trained: nothing more is saved; start again, where it is now if it was moved."
            ) from cause
        if owner.get("token") != self._record["token"]:
            raise _held(self._folder, owner, "was taken over by") from cause

    def _is_ours(self):
        owner, _ = _read(self._path)
        return owner is not None and owner.get("token") == self._record["token"]

    def _beat(self):
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):  # a save will say it
                if self._is_ours():
                    os.utime(self._path)

    def _take(self):
        unfinished.clear(self._path)
        own = unfinished.place(self._path)
        try:
            _write(own, self._record)
            while not storage.place_new(own, self._path):
                owner, touched = _read(self._path)
                if owner is None:
                    continue  # released at this moment
                self._outwait(owner, touched, own.stat().st_mtime)
                if _read(self._path)[0] == owner:
                    own.replace(self._path)
                    time.sleep(_SETTLED)
                    break
        finally:
            own.unlink(missing_ok=True)
        self._check()

    def _outwait(self, owner, touched, now):
        """Returns once the owner is known to be dead; UserError if it lives.

        Args:
          touched: the time of the owner's file on the server's clock.
          now: the time of a file just written, on the same clock.
        """
        lives = alive.lives(owner)
        if lives:
            raise _held(self._folder, owner)
        if lives is not None or now - touched > SILENCE:
            return
        self._log(
            f"{self._folder} was being trained by {_named(owner)}: waiting up to {SILENCE:.0f} s "
            "for a sign of life."
        )
        end = time.monotonic() + SILENCE
        while time.monotonic() < end:
            time.sleep(min(1.0, SILENCE / 10))
            other, again = _read(self._path)
            if other != owner:
                return  # released, or taken by another; looked at anew
            if again != touched:
                raise _held(self._folder, owner)


def _held(folder, owner, how="is being trained by"):
    return UserError(
        f"{folder} {how} {_named(owner)}: wait until it has ended, stop it, or give another folder."
    )


def _named(owner):
    if not {"pid", "host"} <= owner.keys():
        return f"a process that {FILE} does not name"
    return f"process {owner['pid']} on {owner['host']}"


def _read(path) -> tuple[dict | None, float]:
    """(what a lock says, {} if it cannot be read; its time), (None, 0) if it is not there.

    It is opened, for a network's file system shows what is new to those who open a file.
    """
    try:
        with open(path, "rb") as file:
            return strict_json.object_or_none(file.read()) or {}, os.fstat(file.fileno()).st_mtime
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            return None, 0.0
        raise


def _write(path, record):
    with unfinished.naming(path):
        path.write_text(json.dumps(record), encoding="utf-8")
