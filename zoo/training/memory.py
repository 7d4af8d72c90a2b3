"""How much memory there is, and whether something can fit it, told before any of it is taken."""

import os
import pathlib

import jax

from zoo.errors import UserError


def there() -> int | None:
    """Bytes of memory of an accelerator, or of this machine as far as this process may have it;
    None if it cannot be told."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    return statistics.get("bytes_limit") or of_host()


def of_host() -> int | None:
    """Bytes of memory and swap of this machine, or of the group that this process is limited to."""
    try:
        lines = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        rows = dict(line.split(":", 1) for line in lines)
        found = [1024 * sum(int(rows[name].split()[0]) for name in ("MemTotal", "SwapTotal"))]
    except (OSError, ValueError, KeyError):
        try:
            found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
        except (AttributeError, OSError, ValueError):  # not a POSIX system
            return None
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            found.append(int((pathlib.Path("/sys/fs/cgroup") / limit).read_text()))
        except (OSError, ValueError):  # no group, or no limit ("max")
            continue
    return min(found)


def check(what: str, needed: int):
    """UserError if something, in words, needs more bytes than there are at all, used or not."""
    found = there()
    if found is not None and needed > found:
        raise UserError(
            f"{what} needs at least {_told(needed)}, and there are {_told(found)}: give a smaller "
            "number, or a machine with more memory."
        )


def batch_bytes(lanes: int, length: int) -> int:
    """What a batch of a text takes at least: words, targets, places and two masks."""
    return lanes * length * (4 + 4 + 8 + 1 + 1)


def _told(count: int) -> str:
    """Bytes in figures, and in a unit that can be read."""
    power = min(max(0, (len(str(count)) - 1) // 3), 6)
    unit = ("B", "kB", "MB", "GB", "TB", "PB", "EB")[power]
    return f"{count:,} bytes ({count / 1000**power:,.1f} {unit})"
