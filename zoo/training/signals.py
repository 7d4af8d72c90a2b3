"""SIGTERM and Ctrl-C, so that a training run saves its state before it ends."""

import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Within it, SIGTERM and the first Ctrl-C call `handler`; a second Ctrl-C stops at once."""

    def once(number, frame):
        handler(number, frame)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {number: signal.signal(number, once) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
