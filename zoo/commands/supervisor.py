"""A parent process of each of several training processes, which reports how it ended.

JAX ends a process by abort() as soon as another process is gone: no Python code of the process runs
then, and only a trace of C++ is printed.
"""

import ctypes
import os
import signal
import subprocess
import sys

from zoo.errors import LOST

# Set for the process that trains.
_CHILD = "ZOO_SUPERVISED"
_PR_SET_PDEATHSIG = 1
# Words that JAX's coordination prints before it ends a process, followed by a trace of C++.
_NOISE = ("JAX distributed service", "oordination service", "oordination_service")
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")


def is_child() -> bool:
    """Whether a parent started this process."""
    return _CHILD in os.environ


def run() -> int:
    """Runs this program again as a child and returns its exit code, LOST for an abort by JAX."""
    child = subprocess.Popen(
        [sys.executable, *sys.orig_argv[1:]],
        env={**os.environ, _CHILD: "1"},
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # signals of a terminal come once, from here
        preexec_fn=_ending_with_parent(),
    )
    for name in _SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: child.send_signal(number))
    told, noise = False, ""
    assert child.stderr is not None
    for line in child.stderr:
        ours = line.startswith("error: ")
        told |= ours
        if not ours and (noise or any(text in line for text in _NOISE)):
            noise += line
        else:
            sys.stderr.write(line)
            sys.stderr.flush()
    code = child.wait()
    if code != -signal.SIGABRT:
        return code if code >= 0 else 128 - code
    meeting = "RegisterTask" in noise
    if not told:
        reason = noise.partition("absl::Status: ")[2].partition("\n")[0][:200]
        what, remedy = _NEVER_MET if meeting else _LOST
        print(f"error: {what} ({reason}): {remedy}", file=sys.stderr)
    return 2 if meeting else LOST


_NEVER_MET = (
    "the processes of this run do not meet",
    "start all of them with the same --coordinator and --processes, each with its own --process.",
)
_LOST = (
    "another process of this run has ended, or cannot be reached any more",
    "give the same command to all processes again; the run resumes from its last checkpoint.",
)


def _ending_with_parent():
    """Returns a function by which Linux kills the child when its parent is killed; None
    elsewhere."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # found before the fork, after which little is safe
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
