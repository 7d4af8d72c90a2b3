"""Interleaved timing: both sides in one process, A B A B ..., medians and their ratio.

A machine that is busy or warm slows both sides alike, so the ratio holds where the times do not.
"""

import statistics
import time

# Thread pools (Eigen's, OpenMP's) spin for a while after their work; a side must not pay for the
# spinning of the one before it.
SECONDS_BETWEEN = 0.02


def medians(sides: dict, rounds: int) -> dict[str, float]:
    """The median seconds of one call of each side.

    Args:
      sides: {name: function without arguments that returns when its work is done}.
      rounds: how often each side is timed, after two calls that are not; at least 9 to report.
    """
    for side in sides.values():
        side()
        side()
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            time.sleep(SECONDS_BETWEEN)
            begun = time.perf_counter()
            side()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


def print_table(title: str, rows: dict[str, float], baseline: str, unit: str = "ms"):
    """A line a row: its value, and its value divided by the baseline's.

    Args:
      rows: {name: value}, seconds for "ms" and bytes for "MB". baseline: a row's name.
    """
    scale = {"ms": 1e3, "MB": 1e-6}[unit]
    width = max(map(len, rows))
    print(title)
    print(f"  {'':{width}}  {unit:>10}  {'/ ' + baseline:>12}")
    for name, value in rows.items():
        print(f"  {name:{width}}  {value * scale:10.2f}  {value / rows[baseline]:12.3f}")
