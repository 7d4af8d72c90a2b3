"""The end of entry scripts: clear errors and exit codes."""

import contextlib
import logging
import os
import signal
import sys
import threading

from zoo.commands import allocator
from zoo.errors import Interrupted, UserError
from zoo.lazy import MissingExtra
from zoo.runs import storage


def _thread_failed(failure):
    """No traceback from TensorBoard's writing thread on a full disk: the main one tells of it."""
    if not (isinstance(failure.exc_value, OSError) and failure.exc_value.errno in storage.FULL):
        threading.__excepthook__(failure)


def _unraisable(failure):
    """No traceback from a thread of tensorstore that has an answer for orbax, which has failed
    already on another one, and reported it."""
    error = failure.exc_value
    if not (isinstance(error, RuntimeError) and str(error) == "Event loop is closed"):
        sys.__unraisablehook__(failure)


def _tell(line):
    """A line on stderr, if somebody can read it: not on a terminal that was closed."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def run(main) -> int:
    """main() -> 0; a user's error -> its sentence on stderr and 2; an interruption -> 128 + the
    signal's number: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    # orbax warns of what a kill left behind and of what is no trouble, and logs errors that it
    # raises as well.
    logging.getLogger("absl").setLevel(logging.CRITICAL)
    threading.excepthook, sys.unraisablehook = _thread_failed, _unraisable
    try:
        main()
        sys.stdout.flush()  # here, where a closed pipe is no traceback
    except UserError as error:
        _tell(f"error: {error}")
        return 2
    except Interrupted as interruption:
        _tell(interruption)
        return 128 + interruption.signal
    except KeyboardInterrupt:  # outside the training loop, which saves its state before it leaves
        _tell("interrupted")
        return 128 + signal.SIGINT
    except MissingExtra as error:
        _tell(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in storage.FULL:
            raise
        what, remedy = storage.FULL[error.errno]
        where = error.filename or "standard output"  # files are named: storage.naming
        _tell(
            f"error: {what} ({where}): {remedy} and start again; files and checkpoints that were "
            "finished before are whole."
        )
        return 2
    return 0


def program(main):
    """Runs main as a script does, with `run`, and ends with its exit code."""
    allocator.keep_memory()
    leave(run(main))


def leave(code: int):
    """Ends the program with `run`'s exit code.

    After an error without Python's exit handlers: on a full disk TensorBoard's would print two more
    tracebacks under the sentence that says what is wrong.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more, or it is on a full disk
            stream.flush()
    if code:
        os._exit(code)
    sys.exit(code)
