"""The time that a run spends on its training steps.

Neither compilation nor validation nor checkpoints count: they depend on caches, disks and the
number of validations, not on how fast a model learns.
"""

import contextlib
import time
from collections.abc import Callable, Iterator


class Stopwatch:
    """Seconds of training steps."""

    def __init__(self, seconds: float = 0.0, clock: Callable[[], float] = time.perf_counter):
        """Starts the watch."""
        self._clock = clock
        self._begun = clock() - seconds
        self._stopped: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds so far, without the times within `stopped`."""
        now = self._clock() if self._stopped is None else self._stopped
        return now - self._begun

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the watch within a context."""
        self._stopped = self._clock()
        try:
            yield
        finally:
            self._begun += self._clock() - self._stopped
            self._stopped = None
