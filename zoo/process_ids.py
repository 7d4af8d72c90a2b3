"""Which process this is, and whether another one still runs."""

import os
import pathlib
import socket


def this_process() -> dict:
    """What tells this process from all others; "" where the system does not say."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": began(os.getpid()) or "",
        # Numbers of processes are those of one start of one machine, and of one container.
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "namespace": _link("/proc/self/ns/pid"),
    }


def lives(process: dict) -> bool | None:
    """Whether a process, as `this_process` describes it, runs; None if it is of another machine or
    container, or from before this machine's start, so that nobody here can know it."""
    here = this_process()
    if place(process) != place(here):
        return None
    pid = process.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        pass
    start = began(pid)
    if start is None:
        return False  # killed, and not yet waited for
    return start == process.get("began") if start else None


def place(process: dict) -> tuple:
    """Where the number of a process means that process: the start of a machine, and a container."""
    boot = process.get("boot")
    return (boot, process.get("namespace")) if boot else (process.get("host"), boot)


def began(pid: int) -> str | None:
    """When a process began, in ticks since the machine's start; "" if the system does not log, and
    None if it has ended already."""
    # The name of the program, in brackets, may have spaces and brackets in it.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 20:
        return ""
    return None if fields[0] in "ZX" else fields[19]


def _text(path) -> str:
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
