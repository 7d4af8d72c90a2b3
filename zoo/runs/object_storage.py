"""A work directory in a bucket, such as gs://bucket/run: trained in a folder here, copied as it
grows, and fetched again by whichever machine goes on with it.

Files are read and written through `etils.epath`, which knows gs://, s3:// and others. Nothing there
is whole at once, and need not be: a checkpoint that was copied in part is known by its digests and
passed over for the one before, which is deleted only when the next has been copied. A folder here
is whole: it is fetched beside its place. Names of objects are checked as they are listed.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from zoo import lazy, strict_json, unfinished
from zoo.errors import UserError, shortened
from zoo.runs import made_here, ownership
from zoo.trust import remote_names

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
OWNER = "training.owner.json"
# Seconds from one copy to the next, and without any until an owner counts as dead.
EVERY, SILENCE = 30.0, 180.0
# Of a run the first to be copied: without it a bucket holds none.
_EXPERIMENT = "experiment.json"
# Seconds from one look at another owner to the next.
_LOOK = 5.0
# What is of no use elsewhere, or not whole yet.
_LEFT_OUT = re.compile(
    rf"{re.escape(ownership.FILE)}.*|{re.escape(OWNER)}|.*\.partial|.*checkpoint-tmp.*|deleted"
)


def is_one(path: str) -> bool:
    """Whether a path is that of a bucket."""
    return _SCHEME.match(path) is not None


def check_folder(path: str | pathlib.Path):
    """UserError for an address, where a folder of this machine is read."""
    if str(path).startswith("file://"):
        raise UserError(f"{path} is an address: give the path of a folder, without file://.")
    if is_one(str(path)):
        raise UserError(
            f"{path} is in a bucket, and runs are read from folders: fetch it with `zoo pull "
            f"{path} DIR`, and give DIR."
        )


@contextlib.contextmanager
def as_folder(path: str, log=print) -> Iterator[str]:
    """A folder of this machine to train in: the path itself, or for a bucket one that is fetched
    first and copied back within, and once more at the end.

    Args:
      path: a folder or a bucket.
      log: told what goes on, a line at a time.

    Raises:
      UserError: the bucket cannot be read or written, or another process trains in it.
    """
    if not is_one(path):
        yield path
        return
    bucket = Bucket(path, log)
    bucket.take()
    try:
        bucket.fetch()
    except BaseException:
        with contextlib.suppress(UserError):
            bucket.let_go()
        raise
    ended = threading.Event()
    copying = threading.Thread(target=bucket.copy_until, args=(ended,), daemon=True)
    copying.start()
    try:
        yield str(bucket.folder)
    finally:
        ended.set()
        copying.join()
        bucket.copy(last=True)


def fetch(path: str, out: str | pathlib.Path) -> pathlib.Path:
    """Copies the run of a bucket into a folder, which is there whole or not at all.

    Raises:
      UserError: something is at `out`, or the bucket cannot be read, holds no run, or has a name
        that leads out of the folder.
    """
    bucket = Bucket(path)
    with unfinished.folder(out) as folder:
        names = bucket.names()
        if _EXPERIMENT not in names:
            raise UserError(f"{path} holds no run: give the address of one.")
        bucket.download(names, folder)
    return pathlib.Path(out)


def _remote(path: str) -> Any:
    """The bucket as a path of `etils.epath`."""
    with lazy.extra():
        from etils import epath

    return epath.Path(path)


def _check_address(path: str):
    """UserError unless an address names a bucket, and each folder in it in the only way."""
    with lazy.extra():
        from etils import epath

    try:
        epath.Path(path)
    except KeyError as error:
        raise UserError(
            f"{shortened(path)}: {error.args[0]} is not the beginning of a bucket's address: give "
            "one such as gs://BUCKET/RUN, s3://BUCKET/RUN or az://BUCKET/RUN."
        ) from error
    if remote_names.leads_out(path.partition("://")[2].removesuffix("/")):
        raise UserError(
            f"{shortened(path)} is not an address of a run: give a bucket and names with one slash "
            "between them, without . and .., as in gs://BUCKET/RUN."
        )


class Bucket:
    """A bucket, and the folder of this machine that is copied to it."""

    def __init__(self, path: str, log=print):
        """Names both, and looks at neither; UserError for an address that names no bucket."""
        _check_address(path)
        self.path, self._log = path.removesuffix("/"), log
        digest = hashlib.sha256(self.path.encode()).hexdigest()[:8]
        name = f"{self.path.rpartition('/')[2][:50]}-{digest}"  # file systems take 255 bytes
        self.folder = made_here.folder().parent / "buckets" / name
        self._token = uuid.uuid4().hex
        self._copied: dict[str, tuple[int, int]] = {}

    def take(self):
        """Writes down who trains there; UserError if it cannot be written, or another one does."""
        with self._failing("written to"):
            owner = self._owner()
            self._outwait(owner)
            self._sign()

    def _outwait(self, owner: dict):
        """Waits until an owner has to be dead, which a machine that was taken away is; UserError if
        it lives."""
        who = shortened(f"process {owner.get('process')!r} on {owner.get('machine')!r}")
        waited = max(0.0, time.time() - owner.get("time", 0.0))
        if owner and waited < SILENCE:
            self._log(f"{self.path} is {who}'s: waiting for a sign of its life.")
        while owner and waited < SILENCE:
            time.sleep(_LOOK)
            waited += _LOOK
            now = self._owner()
            if now and now != owner:
                raise UserError(f"{self.path} is trained by {who}: stop that one, or give another.")
            owner = now

    def fetch(self):
        """Makes the folder what the bucket is, unless what is here is further."""
        names = self.names()
        if _steps(names) < _steps(_files(self.folder, str(self.folder))):
            self._log(f"{self.folder} is further than {self.path}: going on with it.")
        elif names:
            if _EXPERIMENT not in names:
                raise UserError(
                    f"{self.path} has objects and is not a run of this zoo: give another address."
                )
            with unfinished.folder(self.folder, replace=True) as folder:
                self.download(names, folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def names(self) -> list[str]:
        """Lists the objects; UserError if that fails, or the name of one leads out of a folder."""
        with self._failing("read"):
            return _files(_remote(self.path), self.path)

    def download(self, names: list[str], folder: pathlib.Path):
        """Writes objects below a folder that is there; UserError for one that cannot be."""
        for name in names:
            with self._failing("read"):
                content = (_remote(self.path) / name).read_bytes()
            there = folder / name
            try:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(content)
            except (OSError, ValueError) as error:  # ValueError: a zero character, half a pair
                if getattr(error, "errno", None) in unfinished.FULL:
                    raise
                why = getattr(error, "strerror", None) or error
                raise UserError(
                    f"{self.path} has an object called {shortened(name)!r}, which cannot be a file "
                    f"of this machine ({why}): delete or rename that object."
                ) from error
            self._copied[name] = _state(there)

    def copy_until(self, ended: threading.Event):
        """Copies every now and then; what fails is told and tried again."""
        while not ended.wait(EVERY):
            try:
                self.copy()
            except UserError as error:
                self._log(f"warning: {error}")

    def copy(self, last: bool = False):
        """Copies files that are new or have changed, then deletes those that are here no more.

        Args:
          last: whether this process trains there no longer.

        Raises:
          UserError: the bucket cannot be written to, or another process trains there now.
        """
        if not self.folder.exists():  # nothing was begun
            return self.let_go() if last else None
        with self._failing("written to"):
            remote = _remote(self.path)
            if self._owner().get("token", self._token) != self._token:
                raise UserError(
                    f"{self.path} was taken over by another process: nothing more is copied there; "
                    f"what this one has is in {self.folder}."
                )
            names = _files(self.folder, str(self.folder))
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # an old checkpoint goes meanwhile
                    state = _state(self.folder / name)
                    if self._copied.get(name) != state:
                        there = remote / name
                        there.parent.mkdir(parents=True, exist_ok=True)
                        there.write_bytes((self.folder / name).read_bytes())
                        self._copied[name] = state
            for name in sorted({*self._copied} - {*names}):
                _delete(remote, name)
                del self._copied[name]
            self._sign()
        if last:
            self.let_go()

    def let_go(self):
        """Removes the note of who trains there; UserError if it cannot be."""
        with self._failing("written to"):
            (_remote(self.path) / OWNER).unlink(missing_ok=True)

    def _owner(self) -> dict:
        path = _remote(self.path) / OWNER
        record = strict_json.object_or_none(path.read_bytes()) if path.exists() else None
        # Half of a record, or what no process of this zoo wrote, names no owner.
        return record if record and isinstance(record.get("time"), float) else {}

    def _sign(self):
        _remote(self.path).mkdir(parents=True, exist_ok=True)
        record = {
            "machine": socket.gethostname(),
            "process": os.getpid(),
            "token": self._token,
            "time": time.time(),
        }
        (_remote(self.path) / OWNER).write_text(json.dumps(record))

    @contextlib.contextmanager
    def _failing(self, what):
        """UserError for whatever keeps a bucket from being read or written: each kind of bucket
        has errors of its own."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"{self.path} cannot be {what} ({type(error).__name__}: {error}): look at its "
                "name, at your rights, and whether the package for it is installed (gcsfs for "
                f"gs://){f'; what is here is in {self.folder}' * self.folder.exists()}."
            ) from error


def _delete(remote, name: str):
    """Deletes a file, and folders that are empty then, which buckets do not have."""
    path = remote / name
    path.unlink(missing_ok=True)
    while not is_one(str(remote)) and path.parent != remote and not any(path.parent.iterdir()):
        path = path.parent
        path.rmdir()


def _files(folder, where: str) -> list[str]:
    """Names of the files below a folder or bucket, the experiment first, and then checkpoints.

    Raises:
      UserError: a name leads out of the folder, or has an empty part; names the place by `where`.
    """
    if not folder.exists():
        return []
    found, todo = [], [(folder, "")]
    while todo:
        above, prefix = todo.pop()
        with contextlib.suppress(FileNotFoundError):
            seen = set()
            for path in above.iterdir():
                # An empty part, as in "run//x", is the folder itself once more.
                name = f"{prefix}{'' if path == above else path.name}"
                if remote_names.leads_out(name):
                    raise remote_names.refusal(where, _object(above, path))
                if name in seen:
                    raise UserError(
                        f"{where} has an object {path}, and others below it, as if it were a "
                        "folder: delete or rename either."
                    )
                seen.add(name)
                if _LEFT_OUT.fullmatch(path.name):
                    continue
                if path.is_dir():
                    todo.append((path, f"{name}/"))
                else:
                    found.append(name)
    return sorted(
        found, key=lambda name: (name != _EXPERIMENT, not name.startswith("checkpoints/"), name)
    )


def _object(above, path) -> str:
    """The name of the first object at a path or below it; of one with an empty part, which cannot
    be looked into, the beginning."""
    while path != above and path.is_dir():
        above, path = path, next(iter(path.iterdir()))
    return f"{path}//..." if path == above else str(path)


def _steps(names: list[str]) -> int:
    """The step of the newest of the last checkpoints; -1 without any."""
    steps = [name.split("/")[2] for name in names if name.startswith("checkpoints/last/")]
    return max((int(step) for step in steps if step.isdecimal()), default=-1)


def _state(path: pathlib.Path) -> tuple[int, int]:
    """What changes when a file does."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
