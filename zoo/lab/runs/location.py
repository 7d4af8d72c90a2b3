"""The location of a run's folder: on a local disk, a network file system, or in a bucket.

A bucket's address, gs://BUCKET/RUN, becomes a path of `etils.epath`, which has pathlib's methods
over gcsfs. Orbax writes checkpoints there itself. An object of a bucket is complete or absent, and
cannot be appended to.
"""

import contextlib
import logging
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from zoo.base import lazy, regular_files, temporary_files
from zoo.base.trust import permissions
from zoo.errors import UserError, shortened

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_BUCKET = "gs://"


def is_address(path: str) -> bool:
    """Whether a text is an address with any scheme, such as gs://, rather than a path."""
    return _SCHEME.match(path) is not None


def is_bucket(path: Any) -> bool:
    """Whether a path is an address in a bucket, gs://."""
    return str(path).startswith(_BUCKET)


def to_path(folder: Any) -> Any:
    """Converts the name of a run's folder to a path, pathlib's or, for gs://, epath's; raises
    UserError for other addresses."""
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
    """Returns the real path or address of a folder, the same for all ways to write it."""
    return str(to_path(folder)) if is_bucket(folder) else os.path.realpath(folder)


@contextlib.contextmanager
def convert_errors(path: Any) -> Iterator[None]:
    """Converts errors of a bucket, raised within the context, to a UserError; a missing file, a
    full disk and errors of local paths are raised as they are."""
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
    """Copies the run in a bucket into a new folder, complete or not at all; returns its path."""
    source = to_path(address)
    with temporary_files.folder(out) as folder, convert_errors(source):
        with lazy.extra():
            import gcsfs
        prefix = str(source).removeprefix(_BUCKET) + "/"
        names = [name.removeprefix(prefix) for name in gcsfs.GCSFileSystem().find(str(source))]
        permissions.check_remote(names, str(source))
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
                reason = getattr(error, "strerror", None) or error
                raise UserError(
                    f"{source} has an object called {shortened(name)!r}, which cannot be a file of "
                    f"this machine ({reason}): delete or rename that object."
                ) from error
    return pathlib.Path(out)


def check_writable(path: Any):
    """Raises UserError if a local folder or file exists and cannot be written to; buckets pass."""
    if is_bucket(path):  # rights in a bucket show only on writing
        return
    # Not by pathlib, which raises an error for a name that is too long.
    if regular_files.is_irregular(path):
        raise UserError(f"{path} is not a regular file: remove it or give another folder.")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written to: make it writable or give another folder.")


def read_bytes(file: Any) -> bytes:
    """Reads the bytes of a file of a run; raises UserError if it is missing or cannot be read."""
    try:
        return regular_files.read_bytes(file)
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror or error}): put back a copy of it."
        ) from error
