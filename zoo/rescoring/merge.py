"""The k best hypotheses of further n-best lists added to the first system's: nk-best lists.

A second system, or an inflector of the first system's n hypotheses (Labeau and Allauzen 2017,
section 3.2), offers other words; re-ranking chooses among all.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from zoo.errors import UserError
from zoo.sources.hypotheses import NBestList


def merge_lists(
    lists: Iterable[NBestList],
    others: Sequence[Iterable[NBestList]],
    best: int,
    sparse: bool = False,
) -> Iterator[NBestList]:
    """Yields the lists, each with the best hypotheses of the same list in other files.

    A hypothesis with the same words as another is added once. A missing feature, and the score of a
    hypothesis that the first system did not make, is the lowest of its list. Sparse features may
    be missing.
    """
    for one, *more in itertools.zip_longest(lists, *others):
        for other in more:
            if one is None or other is None or other.id != one.id:
                left, right = (f"the list {x.id!r}" if x else "no list" for x in (one, other))
                raise UserError(
                    f"{left} of the first file meets {right} of another: give files of the same "
                    "lists in the same order."
                )
        hypotheses = {hypothesis.text: hypothesis for hypothesis in reversed(one.hypotheses)}
        added = [
            hypothesis
            for other in more
            for hypothesis in _best(other.hypotheses, best)
            if hypothesis.text not in hypotheses
        ]
        distinct = {hypothesis.text: hypothesis for hypothesis in reversed(added)}
        new = [h for h in added if distinct[h.text] is h]
        yield dataclasses.replace(one, hypotheses=_completed(one.hypotheses, new, sparse))


def _best(hypotheses, count):
    if any(hypothesis.score is None for hypothesis in hypotheses):
        return hypotheses[:count]
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:count]


def _completed(own, new, sparse):
    """Returns all hypotheses, with all features unless these are sparse; a missing one has the
    lowest value of the list."""
    lowest: dict[str, float] = {}
    for hypothesis in () if sparse else (*own, *new):
        for name, value in hypothesis.features.items():
            lowest[name] = min(value, lowest.get(name, value))
    scores = [hypothesis.score for hypothesis in own]
    score = None if None in scores else min(scores)
    completed = [dataclasses.replace(h, features={**lowest, **h.features}) for h in own]
    return completed + [
        dataclasses.replace(h, features={**lowest, **h.features}, score=score) for h in new
    ]
