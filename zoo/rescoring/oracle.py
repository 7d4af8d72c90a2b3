"""The best figure that choosing from n-best lists can reach."""

import numpy as np

from zoo.rescoring.lists import Lists
from zoo.rescoring.metrics import Metric


def choose(lists: Lists, metric: Metric, passes: int = 10) -> np.ndarray:
    """The row of a hypothesis for each list, int64 [L], that make the best figure together.

    For the word error rate it is the best there is. BLEU and chrF of a corpus are no sums; there
    each list in turn takes the hypothesis that helps the whole most, until none changes: no single
    exchange helps any more, so that the figure is a lower bound of the oracle, and a close one.
    """
    background = lists.statistics[lists.untuned()].sum(0)
    rows = lists.best(metric.gain(lists.statistics, background))
    totals = lists.statistics[rows].sum(0)
    for _ in range(passes):
        changed = False
        for one, (start, stop) in enumerate(
            zip(lists.starts[:-1].tolist(), lists.starts[1:].tolist(), strict=True)
        ):
            others = totals - lists.statistics[rows[one]]
            figures = metric.sign * metric.figure(others + lists.statistics[start:stop])
            best = start + int(figures.argmax())
            if figures[best - start] > figures[rows[one] - start] + 1e-12:
                totals, rows[one], changed = others + lists.statistics[best], best, True
        if not changed:
            break
    return rows
