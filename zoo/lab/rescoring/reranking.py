"""N-best lists re-ranked by tuned weights, list by list."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from zoo.base import strict_json
from zoo.errors import UserError, quote
from zoo.lab.evaluation import nbest
from zoo.lab.evaluation.nbest import Hypothesis, NBestList
from zoo.lab.rescoring import run_interpolation
from zoo.lab.rescoring.model_features import Lists

# ---- files of feature weights, in JSON, which `rescore tune` writes and `rescore apply` reads

_GIVE = "give the models, counts, --lattices and --costs that were given to tune."


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of features, and a record of how they were tuned.

    Attributes:
      weights: {feature: its weight}; the score of a hypothesis is the weighted sum.
      added: names of the features that the tuning added to those of the lists, as
        `model_features.Columns.names`; None if it is not known.
      made: metric, method and figures of the tuning, only for readers.

    Example:
      >>> weights = rescoring.Weights({"lm": 1.0, "length": -2.0})
      >>> weights.score({"lm": -1.5, "length": 3})
      -7.5
      >>> weights.of(lists).tolist()
      [1.0, -2.0]
    """

    weights: dict[str, float]
    added: tuple[str, ...] | None = None
    made: dict[str, Any] = dataclasses.field(default_factory=dict)

    def text(self) -> str:
        """Returns the text of the file: the same weights give the same bytes."""
        added = {} if self.added is None else {"added": self.added}
        return run_interpolation.text_of({"weights": self.weights, **added, "made": self.made})

    @classmethod
    def read(cls, path: str) -> "Weights":
        """Reads the weights of a file; raises UserError if it is not a file of weights."""
        value, weights = run_interpolation.read_weights(path, "weights", '"name": 0.5')
        made = value.get("made")
        return cls(
            weights,
            tuple(value["added"]) if "added" in value else None,
            made if isinstance(made, dict) else {},
        )

    def score(self, features: dict[str, float]) -> float:
        """Returns the weighted sum of features, which `check` has checked."""
        return math.fsum(weight * features.get(name, 0.0) for name, weight in self.weights.items())

    def check(self, names: tuple[str, ...], where: str):
        """Raises UserError unless exactly the features of a list have weights."""
        unweighted = [name for name in names if name not in self.weights]
        given = {*names}
        absent = [name for name in self.weights if name not in given]
        if unweighted or absent:
            what = [f"without a weight are {quote(unweighted)}"] if unweighted else []
            what += [f"without a feature are {quote(absent)}"] if absent else []
            raise UserError(
                f"{where}: the features do not match the weights; {' and '.join(what)}: {_GIVE}"
            )

    def check_added(self, names: tuple[str, ...], where: str):
        """Raises UserError unless the features that are added to lists are those of the tuning."""
        if self.added is not None and {*names} != {*self.added}:
            tuned, here = (quote([*some]) if some else "none" for some in (self.added, names))
            raise UserError(
                f"{where}: tune added the features {tuned}, and here {here} are added: {_GIVE}"
            )

    def of(self, lists: Lists):
        """Returns the weights as an array in the order of the lists' features; 0 without one."""
        import numpy as np

        return np.array([self.weights.get(name, 0.0) for name in lists.names])


def reorder(lists: Iterable[NBestList], weights: Weights, path: str, sparse: bool = False):
    """Yields re-ranked lists, each hypothesis with its new score; of equals the earlier first."""
    for one in lists:
        first = one.hypotheses[0]
        if not sparse:
            weights.check(tuple(first.features), f"{path}, line {first.line}")
        scored = [
            dataclasses.replace(hypothesis, score=_score(weights, hypothesis, path))
            for hypothesis in one.hypotheses
        ]
        yield dataclasses.replace(one, hypotheses=sorted(scored, key=lambda h: -(h.score or 0.0)))


def _score(weights, hypothesis, path):
    try:
        score = weights.score(hypothesis.features)
    except (OverflowError, ValueError):  # from infinities of both signs
        score = math.inf
    if not math.isfinite(score):
        raise UserError(
            f"{path}, line {hypothesis.line}: the weighted sum of the features is not a finite "
            "number: give smaller weights or features."
        )
    return score


def lines(lists: Iterable[NBestList], form: str, best: bool = False) -> Iterator[str]:
    """Yields lines with their ends, JSON or fields, of all hypotheses or the best of each list."""
    for one in lists:
        first = one.hypotheses[0]
        if best:
            yield best_line(one.id, first.text)
        elif form == "json":
            hypotheses = [{"text": h.text, "score": h.score, **h.features} for h in one.hypotheses]
            id = int(one.id) if one.numbered else one.id
            value: dict = {"id": id, "hypotheses": hypotheses}
            if one.reference is not None:
                value["reference"] = one.reference
            yield strict_json.dumps(value, ensure_ascii=False) + "\n"
        else:
            for h in one.hypotheses:
                yield (
                    nbest.line(one.id, h.words, h.features, h.score or 0.0, h.further_fields) + "\n"
                )


def best_line(id: str, text: str) -> str:
    """Formats the best hypothesis as in Kaldi, or with a tab behind an id that has blanks."""
    separator = " " if id.split() == [id] else "\t"
    return f"{id}{separator}{text}".rstrip(" ") + "\n"


# ---- the k best hypotheses of further n-best lists added to the first system's: nk-best lists
# A second system, or an inflector of the first system's n hypotheses (Labeau and Allauzen 2017,
# section 3.2), offers other words; re-ranking chooses among all.


def merge_lists(
    lists: Iterable[NBestList],
    others: Sequence[Iterable[NBestList]],
    best: int,
    sparse: bool = False,
) -> Iterator[NBestList]:
    """Yields the lists, each with the best new hypotheses of the same list in other files."""
    for one, *more in itertools.zip_longest(lists, *others):
        for other in more:
            if one is None or other is None or other.id != one.id:
                left, right = (f"the list {x.id!r}" if x else "no list" for x in (one, other))
                raise UserError(
                    f"{left} of the first file meets {right} of another: give files of the same "
                    "lists in the same order."
                )
        known = {hypothesis.text for hypothesis in one.hypotheses}
        new: dict[str, Hypothesis] = {}
        for other in more:
            found = other.hypotheses
            if all(hypothesis.score is not None for hypothesis in found):
                found = sorted(found, key=lambda hypothesis: -hypothesis.score)
            for hypothesis in found[:best]:
                if hypothesis.text not in known:
                    new.setdefault(hypothesis.text, hypothesis)
        hypotheses = _completed(one.hypotheses, [*new.values()], sparse)
        yield dataclasses.replace(one, hypotheses=hypotheses)


def _completed(own, new, sparse):
    """Returns all hypotheses; a missing score, or feature unless sparse, is the list's lowest."""
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
