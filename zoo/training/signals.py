"""SIGTERM, SIGHUP and Ctrl-C, so that a training run saves its state before it ends."""

import contextlib
import signal
from collections.abc import Callable, Iterator

# SIGHUP, of a terminal that is closed, is not on every system.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Within it, SIGTERM, SIGHUP and the first Ctrl-C call `handler`; a second Ctrl-C stops at
    once. A signal that is ignored, as SIGHUP is under nohup, stays so."""

    def once(number, frame):
        handler(number, frame)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    previous = {
        number: signal.signal(number, once)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
