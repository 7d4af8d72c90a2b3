"""Bars of long computations, on a terminal and where a command asks for them."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from zoo import lazy

# Seconds before a bar appears.
DELAY = 1.0
_asked = contextvars.ContextVar("asked", default=False)


@contextlib.contextmanager
def on_terminal() -> Iterator[None]:
    """Shows bars of the computations inside, if standard error is a terminal."""
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


@contextlib.contextmanager
def bar(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Yields a function that advances a bar, which appears after `DELAY`.

    Outside `on_terminal` there is none, and the function does nothing.
    """
    if not _asked.get():
        yield lambda done: None
        return
    with lazy.extra():
        from tqdm import tqdm
    with tqdm(
        total=total, unit=f" {unit}", disable=None, delay=DELAY, leave=False, dynamic_ncols=True
    ) as shown:
        yield shown.update
