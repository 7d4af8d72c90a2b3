"""The size of memory, and checks that a computation fits before it allocates any."""

import os
import pathlib
from typing import Any

import jax

from zoo.errors import UserError


def device_memory() -> int | None:
    """Returns the bytes of memory of the first accelerator, or `host_memory()` without one."""
    return (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit") or host_memory()


def host_memory() -> int | None:
    """Returns the bytes of memory and swap of this machine, or the limit of this process's cgroup.

    None if the system does not give the size.
    """
    try:
        lines = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        rows = dict(line.split(":", 1) for line in lines)
        sizes = [1024 * sum(int(rows[name].split()[0]) for name in ("MemTotal", "SwapTotal"))]
    except (OSError, ValueError, KeyError):
        try:
            sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        except (AttributeError, OSError, ValueError):  # not a POSIX system
            return None
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            sizes.append(int((pathlib.Path("/sys/fs/cgroup") / limit).read_text()))
        except (OSError, ValueError):  # no group, or no limit ("max")
            continue
    return min(sizes)


def check(task: str, needed: int, available: int | None = None):
    """Raises UserError if a computation needs more than the whole memory, used or free."""
    available = device_memory() if available is None else available
    if available is not None and needed > available:
        raise UserError(
            f"{task} needs at least {_amount(needed)}, and there are {_amount(available)}: give a "
            "smaller number, or a machine with more memory."
        )


def check_fields(recipe: Any, name: str, **item_bytes: int):
    """Raises UserError for a recipe whose items would not fit in this machine's memory."""
    for field, size in item_bytes.items():
        count = getattr(recipe, field)
        check(f"{name}.{field}={count}", count * size, host_memory())


def _amount(count: int) -> str:
    """Formats a number of bytes in figures and in a larger unit."""
    power = min(max(0, (len(str(count)) - 1) // 3), 6)
    unit = ("B", "kB", "MB", "GB", "TB", "PB", "EB")[power]
    return f"{count:,} bytes ({count / 1000**power:,.1f} {unit})"
