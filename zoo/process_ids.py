"""Identities of processes, over machines and restarts, and whether a process still runs."""

import os
import pathlib
import socket


def this_process() -> dict:
    """Returns a record that identifies this process; values are "" where the system lacks them."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": began(os.getpid()) or "",
        # Process numbers are unique only since the start of one machine, and in one container.
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "namespace": _link("/proc/self/ns/pid"),
    }


def lives(process: dict) -> bool | None:
    """Whether a process still runs."""
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
        return False  # a zombie
    return start == process.get("began") if start else None


def place(process: dict) -> tuple:
    """Returns the scope in which a process number is unique: a machine's start and a container."""
    boot = process.get("boot")
    return (boot, process.get("namespace")) if boot else (process.get("host"), boot)


def began(pid: int) -> str | None:
    """Returns the start time of a process, in ticks since the machine's start."""
    # The program's name, in brackets, may itself have spaces and brackets.
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
