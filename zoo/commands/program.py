"""An entry script as a program: how it was called, its streams, its errors and exit codes."""

import argparse
import contextlib
import io
import logging
import os
import pathlib
import shlex
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Sequence

from zoo import temporary_files
from zoo.commands import allocator
from zoo.errors import LOST, Interrupted, ProcessLost, UserError
from zoo.lazy import MissingExtra

SCRIPTS = ("train.py", "evaluate.py")


class _Used(SystemExit):
    """The exit after --help, or after a wrong command line."""


def parse(
    parser: argparse.ArgumentParser, words: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parses a command line, by default the process's own.

    A SystemExit of argparse becomes a _Used here, so that `run` can tell it from a SystemExit
    raised by the user's own code.
    """
    try:
        return parser.parse_args(words)
    except SystemExit as end:
        raise _Used(end.code) from None


def _thread_failed(failure):
    """Hides the traceback of TensorBoard's writing thread on a full disk: the main thread reports
    it."""
    if not (
        isinstance(failure.exc_value, OSError) and failure.exc_value.errno in temporary_files.FULL
    ):
        threading.__excepthook__(failure)


def _unraisable(failure):
    """Hides the traceback of a tensorstore thread that answers orbax after orbax has failed already
    on another thread, and reported it."""
    error = failure.exc_value
    if not (isinstance(error, RuntimeError) and str(error) == "Event loop is closed"):
        sys.__unraisablehook__(failure)


def _tell(line):
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
    threading.excepthook, sys.unraisablehook = _thread_failed, _unraisable
    try:
        main()
        sys.stdout.flush()  # here, where a closed pipe does not give a traceback
    except UserError as error:
        _tell(f"error: {error}")
        return 2
    except Interrupted as interruption:
        _tell(interruption)
        return 128 + interruption.signal
    except _Used:
        raise
    except SystemExit as end:
        where = traceback.extract_tb(end.__traceback__)
        # Raised by the user's own code, as none of Zoo's does so: exit code 0 would be wrong.
        frame = next(
            f
            for f in reversed(where)
            if not f.filename.startswith("<frozen ") and f.filename != argparse.__file__
        )
        _tell(
            f"error: {frame.filename}, line {frame.lineno} ends the program "
            f"(SystemExit: {end.code}) before it has finished: remove that."
        )
        return 2
    except KeyboardInterrupt:  # outside the training loop, which saves its state before it leaves
        _tell("interrupted")
        return 128 + signal.SIGINT
    except ProcessLost as error:
        _tell(f"error: {error}")
        return LOST
    except MissingExtra as error:
        _tell(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in temporary_files.FULL:
            raise
        what, remedy = temporary_files.FULL[error.errno]
        place = error.filename or "standard output"  # files are named: temporary_files.naming
        _tell(
            f"error: {what} ({place}): {remedy} and start again; files and checkpoints that were "
            "finished before are whole."
        )
        return 2
    return 0


def program(main):
    """Runs main as a script does, with `run`, and exits with its code."""
    open_streams()
    allocator.keep_memory()
    try:
        code = run(main)
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    leave(code)


def open_streams():
    """Reconfigures the standard streams so that reading and writing never fail on a letter.

    A stream that is closed, as by `>&-`, is replaced by an empty one. On a terminal, or with
    PYTHONIOENCODING, letters outside the encoding are escaped; any other stream gets UTF-8, the
    encoding of all files of Zoo.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            empty = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(empty.fileno(), True)  # for programs that this one starts
            setattr(sys, name, empty)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # unless somebody has replaced it
            own = stream.isatty() or "PYTHONIOENCODING" in os.environ
            stream.reconfigure(encoding=None if own else "utf-8", errors="backslashreplace")


def leave(code: int):
    """Exits with `run`'s exit code.

    After an error Python's exit handlers are skipped: on a full disk TensorBoard's would print two
    more tracebacks under the error message.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more, or it is on a full disk
            stream.flush()
    processes = sys.modules.get("zoo.distributed")  # imported by those commands that train
    if processes is not None and code != LOST:
        processes.leave(code)
    if code:
        os._exit(code)
    sys.exit(code)


def called() -> str:
    """Returns how the user called the program: "zoo", or "python -m zoo"."""
    path = pathlib.Path(sys.argv[0])
    if path.name not in ("zoo", "zoo.exe"):
        return "python -m zoo"
    found = shutil.which("zoo")
    on_path = found is not None and pathlib.Path(found).absolute() == path.absolute()
    return "zoo" if on_path else shlex.quote(sys.argv[0])


def command(name: str) -> str:
    """Returns another command, called the way that this one was."""
    script = pathlib.Path(sys.argv[0])
    if script.name in SCRIPTS and f"{name}.py" in SCRIPTS:
        return shlex.join(["python", str(script.with_name(f"{name}.py"))])
    return f"{called()} {name}"


def again() -> str:
    """Returns this very command line, for a shell."""
    script = pathlib.Path(sys.argv[0])
    script_call = shlex.join(["python", str(script)]) if script.name in SCRIPTS else called()
    return f"{script_call} {shlex.join(sys.argv[1:])}"
