"""An entry script as a program: how it was called, its streams, its errors and exit codes; the
memory that it keeps, and the compiled programs that it finds again."""

import argparse
import contextlib
import ctypes
import hashlib
import io
import logging
import os
import pathlib
import platform
import shlex
import shutil
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence

from zoo.base import lazy, temporary_files
from zoo.base.lazy import MissingExtra
from zoo.errors import LOST, Interrupted, ProcessLost, UserError

SCRIPTS = ("train.py", "evaluate.py")


class _UsageExit(SystemExit):
    """The exit after --help, or after a wrong command line."""


def parse(
    parser: argparse.ArgumentParser, words: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parses a command line; `run` can tell argparse's exit, _Used, from the user's own code's."""
    try:
        return parser.parse_args(words)
    except SystemExit as end:
        raise _UsageExit(end.code) from None


def _report_thread_failure(failure):
    """Hides the traceback of TensorBoard's thread on a full disk: the main thread reports it."""
    if not (
        isinstance(failure.exc_value, OSError) and failure.exc_value.errno in temporary_files.FULL
    ):
        threading.__excepthook__(failure)


def _report_unraisable(failure):
    """Hides the traceback of a tensorstore thread that answers orbax after orbax has failed."""
    error = failure.exc_value
    if not (isinstance(error, RuntimeError) and str(error) == "Event loop is closed"):
        sys.__unraisablehook__(failure)


def _print_error(line):
    """Prints a line on stderr, unless stderr is a terminal that was closed."""
    try:
        # In one write, lest a trace of C++ comes between it and its end where stderr is unbuffered.
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def run(main) -> int:
    """Runs an entry script's main function; returns the exit code."""
    # orbax warns of leftovers of killed processes and of harmless things, and logs errors that it
    # raises as well.
    logging.getLogger("absl").setLevel(logging.CRITICAL)
    threading.excepthook, sys.unraisablehook = _report_thread_failure, _report_unraisable
    try:
        main()
        sys.stdout.flush()  # here, where a closed pipe does not give a traceback
    except (UserError, MissingExtra) as error:
        _print_error(f"error: {error}")
        return 2
    except Interrupted as interruption:
        _print_error(interruption)
        return 128 + interruption.signal
    except _UsageExit:
        raise
    except SystemExit as end:
        frames = traceback.extract_tb(end.__traceback__)
        # Raised by the user's own code, as none of Zoo's does so: exit code 0 would be wrong.
        frame = next(
            f
            for f in reversed(frames)
            if not f.filename.startswith("<frozen ") and f.filename != argparse.__file__
        )
        _print_error(
            f"error: {frame.filename}, line {frame.lineno} ends the program "
            f"(SystemExit: {end.code}) before it has finished: remove that."
        )
        return 2
    except KeyboardInterrupt:  # outside the training loop, which saves its state before it leaves
        _print_error("interrupted")
        return 128 + signal.SIGINT
    except ProcessLost as error:
        _print_error(f"error: {error}")
        return LOST
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in temporary_files.FULL:
            raise
        reason, remedy = temporary_files.FULL[error.errno]
        place = error.filename or "standard output"  # files are named: temporary_files.naming
        _print_error(
            f"error: {reason} ({place}): {remedy} and start again; files and checkpoints that were "
            "finished before are whole."
        )
        return 2
    return 0


def program(main):
    """Runs main as a script does, with `run`, and exits with its code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # a stream that was closed, as by `>&-`
            empty = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(empty.fileno(), True)  # for programs that this one starts
            setattr(sys, name, empty)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # unless somebody has replaced it
            is_set = stream.isatty() or "PYTHONIOENCODING" in os.environ
            # UTF-8 is the encoding of all files of Zoo; no letter makes a stream fail.
            stream.reconfigure(encoding=None if is_set else "utf-8", errors="backslashreplace")
    keep_memory()
    try:
        code = run(main)
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    leave(code)


def leave(code: int):
    """Exits with `run`'s exit code, after an error without Python's exit handlers."""
    if code == 128 + signal.SIGTERM:  # which a scheduler may send again while we leave
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more, or it is on a full disk
            stream.flush()
    processes = sys.modules.get("zoo.base.distributed")  # imported by those commands that train
    if processes is not None and code != LOST:
        processes.leave(code)
    if code:  # on a full disk TensorBoard's handlers would print tracebacks under the error
        os._exit(code)
    sys.exit(code)


def prog() -> str:
    """Returns the program's name as the user called it: "zoo", or "python -m zoo"."""
    path = pathlib.Path(sys.argv[0])
    if path.name not in ("zoo", "zoo.exe"):
        return "python -m zoo"
    path_name = shutil.which("zoo")
    on_path = path_name is not None and pathlib.Path(path_name).absolute() == path.absolute()
    return "zoo" if on_path else shlex.quote(sys.argv[0])


def command(name: str) -> str:
    """Returns another command, called the way that this one was."""
    script = pathlib.Path(sys.argv[0])
    if script.name in SCRIPTS and f"{name}.py" in SCRIPTS:
        return shlex.join(["python", str(script.with_name(f"{name}.py"))])
    return f"{prog()} {name}"


def command_line() -> str:
    """Returns the whole command line of this process, for a shell."""
    script = pathlib.Path(sys.argv[0])
    script_call = shlex.join(["python", str(script)]) if script.name in SCRIPTS else prog()
    return f"{script_call} {shlex.join(sys.argv[1:])}"


# ------------------------- glibc's allocator, told to keep freed arrays for the next step
# A step on CPU allocates its arrays anew. By default glibc returns large ones to the system when
# they are freed, and the next step pays for every page again. Kept, they cost nothing: a step of
# `ptb_softmax` takes four fifths of the time. XLA allocates in threads of its own, whose arenas
# glibc would unmap whenever they are empty: all threads share one arena. The process holds the most
# that it has needed until it ends.

# Parameters of mallopt, of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


def keep_memory() -> bool:
    """Tells glibc to keep freed memory, unless the environment has settings; returns whether."""
    names = [name for name in os.environ if name.startswith("MALLOC_") or name == "LD_PRELOAD"]
    try:
        if names or not os.confstr("CS_GNU_LIBC_VERSION"):
            return False
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, ValueError):  # no glibc, no such function
        return False
    settings = (_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1)
    return all(mallopt(*setting) for setting in settings)


# ------------------------- compiled programs, kept from run to run in the user's cache folder
# The first step of a run is mostly compilation. JAX can keep compiled programs in a folder, under a
# key of the program, the options and the versions. Several runs may share the folder, but an entry
# is not written atomically, so that a run that is killed while it writes leaves half an entry
# behind. JAX writes the file with an entry's time after the entry itself: an entry without this
# file is incomplete, and is removed before the folder is used.

CACHE_BYTES = 2**30
# Programs that compile faster are not kept: to look one up takes as long.
CACHE_SECONDS = 0.2
# Endings of JAX's own files, the same in all its versions.
_ENTRY, _TIME, _LOCK = "-cache", "-atime", ".lockfile"
# Variables by which the user configures JAX's cache: then it is left alone.
_CACHE_VARIABLES = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
_SETTINGS = {
    "jax_compilation_cache_max_size": CACHE_BYTES,
    "jax_persistent_cache_min_compile_time_secs": CACHE_SECONDS,
}


def cache_folder() -> pathlib.Path:
    """Returns this processor's folder in $XDG_CACHE_HOME or ~/.cache, which several may share."""
    setting = os.environ.get("XDG_CACHE_HOME", "")
    home = pathlib.Path(setting) if os.path.isabs(setting) else pathlib.Path.home() / ".cache"
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    fields = ("model name", "flags", "Features")  # with the instruction set
    descriptions = {line for line in lines if line.partition("\t")[0] in fields}
    processor = "\n".join([platform.machine(), platform.processor(), *sorted(descriptions)])
    return home / "zoo" / f"compiled-{hashlib.sha256(processor.encode()).hexdigest()[:12]}"


def keep_compiled() -> pathlib.Path | None:
    """Makes JAX keep compiled programs from now on; returns the folder, None where none are kept,
    as where the user has configured JAX's cache or the folder cannot be written to."""
    import jax  # here, for --help needs none

    is_configured = any(name in os.environ for name in _CACHE_VARIABLES)
    if is_configured or jax.config.values["jax_compilation_cache_dir"]:
        return None
    try:
        with lazy.extra():
            import filelock
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with filelock.FileLock(folder / _LOCK, timeout=2):
            # Removes entries that a kill left incomplete, or a power failure empty.
            for entry in folder.glob(f"*{_ENTRY}"):
                time_file = folder / f"{entry.name.removesuffix(_ENTRY)}{_TIME}"
                if not time_file.exists() or not entry.stat().st_size:
                    entry.unlink()
                    time_file.unlink(missing_ok=True)
    # OSError if the folder is locked, too; RuntimeError without a home folder.
    except (OSError, RuntimeError, MissingExtra):
        return None
    for name, value in _SETTINGS.items():
        if name.upper() not in os.environ:
            jax.config.update(name, value)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    warnings.filterwarnings(
        "ignore", "Error (reading|writing) persistent compilation cache entry", UserWarning
    )
    warnings.filterwarnings("ignore", "Cache value for key .* exceeds", UserWarning)
    return folder
