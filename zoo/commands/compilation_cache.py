"""Compiled programs, kept from run to run in the user's cache folder.

The first step of a run is mostly compilation. JAX can keep compiled programs in a folder, under a
key of the program, the options and the versions. Several runs may share the folder, but an entry is
not written atomically, so that a run that is killed while it writes leaves half an entry behind.
JAX writes the file with an entry's time after the entry itself: an entry without this file is
incomplete, and is removed before the folder is used.
"""

import hashlib
import os
import pathlib
import platform
import warnings

import jax

from zoo import lazy

BYTES = 2**30
# Programs that compile faster are not kept: to look one up takes as long.
SECONDS = 0.2
# Endings of JAX's own files, the same in all its versions.
_ENTRY, _TIME, _LOCK = "-cache", "-atime", ".lockfile"
# Variables by which the user configures JAX's cache: then it is left alone.
_OWN = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
_SETTINGS = {
    "jax_compilation_cache_max_size": BYTES,
    "jax_persistent_cache_min_compile_time_secs": SECONDS,
}


def folder() -> pathlib.Path:
    """Returns the cache folder for this machine, in $XDG_CACHE_HOME, by default ~/.cache.

    Programs are made for the instructions of a processor, and a home may be shared by several.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = pathlib.Path(given) if os.path.isabs(given) else pathlib.Path.home() / ".cache"
    machine = hashlib.sha256(_processor().encode()).hexdigest()[:12]
    return home / "zoo" / f"compiled-{machine}"


def _processor() -> str:
    """Describes the processor; on Linux with its instruction set."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    told = [
        line for line in lines if line.partition("\t")[0] in ("model name", "flags", "Features")
    ]
    return "\n".join([platform.machine(), platform.processor(), *sorted({*told})])


def use() -> pathlib.Path | None:
    """Makes JAX keep compiled programs from now on; returns the folder, or None where none are
    kept.

    It changes nothing where the user has configured JAX's cache. Nothing is kept where the folder
    cannot be written to, or without filelock, which JAX needs as well. A program that cannot be
    read or written later is compiled as usual.
    """
    if any(name in os.environ for name in _OWN) or jax.config.values["jax_compilation_cache_dir"]:
        return None
    try:
        with lazy.extra():
            import filelock
    except lazy.MissingExtra:
        return None
    try:
        there = folder()
        there.mkdir(mode=0o700, parents=True, exist_ok=True)
        with filelock.FileLock(there / _LOCK, timeout=2):
            _remove_unfinished(there)
    except (OSError, RuntimeError, filelock.Timeout):  # RuntimeError: there is no home
        return None
    for name, value in _SETTINGS.items():
        if name.upper() not in os.environ:
            jax.config.update(name, value)
    jax.config.update("jax_compilation_cache_dir", str(there))
    warnings.filterwarnings(
        "ignore", "Error (reading|writing) persistent compilation cache entry", UserWarning
    )
    warnings.filterwarnings("ignore", "Cache value for key .* exceeds", UserWarning)
    return there


def _remove_unfinished(there: pathlib.Path):
    """Removes entries that a killed process left half written, and empty entries, which a power
    failure may leave."""
    names = {path.name for path in there.iterdir()}
    for name in names:
        key = name.removesuffix(_ENTRY)
        if name == key:
            continue
        entry = there / name
        if f"{key}{_TIME}" not in names or not entry.stat().st_size:
            entry.unlink()
            (there / f"{key}{_TIME}").unlink(missing_ok=True)
