"""How much memory there is, and whether something can fit it, told before any of it is taken."""

import os
import pathlib
from typing import Any

import jax

from zoo.errors import UserError


def there() -> int | None:
    """Bytes of memory of an accelerator, or of this machine as far as this process may have it;
    None if they cannot be told."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    return statistics.get("bytes_limit") or of_host()


def of_host() -> int | None:
    """Bytes of memory and swap of this machine, or of the group that this process is limited to."""
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


def check(what: str, needed: int, available: int | None = None):
    """Refuses what needs more memory than there is at all, used or not.

    Args:
      what: what needs it, in words, for the message.
      needed: bytes that it needs at least.
      available: bytes that there are; `there()` without it.

    Raises:
      UserError: it needs more than there is; names both numbers of bytes.
    """
    available = there() if available is None else available
    if available is not None and needed > available:
        raise UserError(
            f"{what} needs at least {_told(needed)}, and there are {_told(available)}: give a "
            "smaller number, or a machine with more memory."
        )


def check_fields(recipe: Any, name: str, **item_bytes: int):
    """Refuses fields of a recipe that ask for more of something than this machine can hold.

    Args:
      recipe: whose fields they are.
      name: what it is called in messages.
      **item_bytes: {field, a number of items: bytes that one of them takes at least}.

    Raises:
      UserError: as `check`, for the first such field.
    """
    for field, size in item_bytes.items():
        count = getattr(recipe, field)
        check(f"{name}.{field}={count}", count * size, of_host())


def _told(count: int) -> str:
    """Bytes in figures, and in a unit that can be read."""
    power = min(max(0, (len(str(count)) - 1) // 3), 6)
    unit = ("B", "kB", "MB", "GB", "TB", "PB", "EB")[power]
    return f"{count:,} bytes ({count / 1000**power:,.1f} {unit})"
