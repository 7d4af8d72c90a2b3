"""Handlers of SIGTERM, SIGHUP and Ctrl-C, by which a run saves its state before it ends."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

# Not every system has SIGHUP, which is sent when a terminal is closed.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handles SIGTERM, SIGHUP and the first Ctrl-C within a context.

    A second Ctrl-C raises KeyboardInterrupt at once. A signal that is ignored, as SIGHUP is under
    nohup, stays ignored. Outside the main thread, where Python does not allow handlers, no signal
    is handled.
    """

    def once(number, frame):
        handler(number, frame)
        if signal.SIGINT in previous:  # else it stays ignored
            signal.signal(signal.SIGINT, signal.default_int_handler)

    main_thread = threading.current_thread() is threading.main_thread()
    names = _NAMES if main_thread else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    previous = {
        number: before
        for number in numbers
        if (before := signal.getsignal(number)) is not signal.SIG_IGN
    }
    for number in previous:
        signal.signal(number, once)
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
