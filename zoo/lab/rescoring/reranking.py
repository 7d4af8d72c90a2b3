"""N-best lists re-ranked by tuned weights, list by list."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from zoo.base import strict_json
from zoo.errors import UserError, quote
from zoo.lab.evaluation.nbest import Hypothesis, NBestList, line
from zoo.lab.rescoring import run_interpolation
from zoo.lab.rescoring.model_features import Lists

# ---- files of feature weights, in JSON, which `rescore tune` writes and `rescore apply` reads

_HINT = "give the models, counts, --lattices and --costs that were given to tune."


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of features, and a record of how they were tuned.

    Attributes:
      weights: {feature: its weight}; the score of a hypothesis is the weighted sum.
      added: names of the features that the tuning added to those of the lists, as
        `model_features.Columns.names`; None if it is not known.
      tuning: metric, method and figures of the tuning, only for readers.

    Example:
      >>> weights = rescoring.Weights({"lm": 1.0, "length": -2.0})
      >>> weights.score({"lm": -1.5, "length": 3})
      -7.5
      >>> weights.as_array(lists).tolist()
      [1.0, -2.0]
    """

    weights: dict[str, float]
    added: tuple[str, ...] | None = None
    tuning: dict[str, Any] = dataclasses.field(default_factory=dict)

    def text(self) -> str:
        """Formats the weights as the JSON text of their file."""
        added = {} if self.added is None else {"added": self.added}
        return run_interpolation.to_json({"weights": self.weights, **added, "made": self.tuning})

    @classmethod
    def read(cls, path: str) -> "Weights":
        """Reads the weights of a file; raises UserError if it is not a file of weights."""
        content, weights = run_interpolation.read_weights(path, "weights", '"name": 0.5')
        added = None if content.get("added") is None else tuple(content["added"])
        tuning = content.get("made")
        return cls(weights, added, tuning if isinstance(tuning, dict) else {})

    def score(self, features: dict[str, float]) -> float:
        """Returns sum_k weight_k feature_k of a hypothesis; a missing weight or feature is 0."""
        return math.fsum(weight * features.get(name, 0.0) for name, weight in self.weights.items())

    def check(self, names: tuple[str, ...], location: str):
        """Raises UserError unless exactly the named features have weights."""
        unweighted = [name for name in names if name not in self.weights]
        features = {*names}
        absent = [name for name in self.weights if name not in features]
        if unweighted or absent:
            gaps = [f"without a weight are {quote(unweighted)}"] if unweighted else []
            gaps += [f"without a feature are {quote(absent)}"] if absent else []
            raise UserError(
                f"{location}: the features do not match the weights; {' and '.join(gaps)}: {_HINT}"
            )

    def check_added(self, names: tuple[str, ...], location: str):
        """Raises UserError unless `names` are the features added for tuning; passes if unknown."""
        if self.added is not None and {*names} != {*self.added}:
            tuned, added = (quote([*group]) if group else "none" for group in (self.added, names))
            raise UserError(
                f"{location}: tune added the features {tuned}, and here {added} are added: {_HINT}"
            )

    def as_array(self, lists: Lists) -> np.ndarray:
        """Returns the weights of the lists' features in their order, float64 [F]; 0 if missing."""
        return np.array([self.weights.get(name, 0.0) for name in lists.names])


def reorder(lists: Iterable[NBestList], weights: Weights, path: str, sparse: bool = False):
    """Yields each list sorted by weighted score, the best first, equal scores in their old order.

    Raises UserError if a score is not finite or, unless `sparse`, features and weights do not
    match.
    """
    for nbest in lists:
        first_hypothesis = nbest.hypotheses[0]
        if not sparse:
            weights.check(tuple(first_hypothesis.features), f"{path}, line {first_hypothesis.line}")
        hypotheses = []
        for hypothesis in nbest.hypotheses:
            try:
                score = weights.score(hypothesis.features)
            except (OverflowError, ValueError):  # from infinities of both signs
                score = math.inf
            if not math.isfinite(score):
                raise UserError(
                    f"{path}, line {hypothesis.line}: the weighted sum of the features is not a "
                    "finite number: give smaller weights or features."
                )
            hypotheses.append(dataclasses.replace(hypothesis, score=score))
        hypotheses.sort(key=lambda h: -(h.score or 0.0))
        yield dataclasses.replace(nbest, hypotheses=hypotheses)


def format_lists(lists: Iterable[NBestList], form: str, only_best: bool = False) -> Iterator[str]:
    """Yields lines of lists, with line breaks: the best hypothesis of each with `only_best`, a JSON
    object of each for the form "json", else a line for each hypothesis."""
    for nbest in lists:
        first = nbest.hypotheses[0]
        if only_best:
            yield best_line(nbest.id, first.text)
        elif form == "json":
            entries = [{"text": h.text, "score": h.score, **h.features} for h in nbest.hypotheses]
            id = int(nbest.id) if nbest.numbered else nbest.id
            record: dict = {"id": id, "hypotheses": entries}
            if nbest.reference is not None:
                record["reference"] = nbest.reference
            yield strict_json.dumps(record, ensure_ascii=False) + "\n"
        else:
            for h in nbest.hypotheses:
                yield line(nbest.id, h.words, h.features, h.score or 0.0, h.further_fields) + "\n"


def best_line(id: str, text: str) -> str:
    """Formats a list's best hypothesis as a line: id, blank (tab if the id has blanks), words."""
    separator = " " if id.split() == [id] else "\t"
    return f"{id}{separator}{text}".rstrip(" ") + "\n"


# ---- the k best hypotheses of further n-best lists added to the first system's: nk-best lists
# A second system, or an inflector of the first system's n hypotheses (Labeau and Allauzen 2017,
# section 3.2), offers other words; re-ranking chooses among all.


def merge_lists(
    lists: Iterable[NBestList],
    other_systems: Sequence[Iterable[NBestList]],
    best: int,
    sparse: bool = False,
) -> Iterator[NBestList]:
    """Yields each list with those of the `best` best hypotheses of each other system whose text it
    does not have yet.

    Raises UserError unless all files have the same lists in the same order.
    """
    for nbest, *partners in itertools.zip_longest(lists, *other_systems):
        for partner in partners:
            if nbest is None or partner is None or partner.id != nbest.id:
                first, second = (f"the list {x.id!r}" if x else "no list" for x in (nbest, partner))
                raise UserError(
                    f"{first} of the first file meets {second} of another: "
                    "give files of the same lists in the same order."
                )
        texts = {hypothesis.text for hypothesis in nbest.hypotheses}
        additions: dict[str, Hypothesis] = {}
        for partner in partners:
            candidates = partner.hypotheses
            if all(hypothesis.score is not None for hypothesis in candidates):
                candidates = sorted(candidates, key=lambda hypothesis: -hypothesis.score)
            for hypothesis in candidates[:best]:
                if hypothesis.text not in texts:
                    additions.setdefault(hypothesis.text, hypothesis)
        hypotheses = _fill_missing(nbest.hypotheses, [*additions.values()], sparse)
        yield dataclasses.replace(nbest, hypotheses=hypotheses)


def _fill_missing(hypotheses, additions, sparse):
    """Joins hypotheses and additions. Additions get the lowest score of the hypotheses, None if
    any of these has none; missing features become the lowest of all, but with `sparse` stay so."""
    lowest: dict[str, float] = {}
    for hypothesis in () if sparse else (*hypotheses, *additions):
        for name, value in hypothesis.features.items():
            lowest[name] = min(value, lowest.get(name, value))
    scores = [hypothesis.score for hypothesis in hypotheses]
    score = None if None in scores else min(scores)
    completed = [dataclasses.replace(h, features={**lowest, **h.features}) for h in hypotheses]
    return completed + [
        dataclasses.replace(h, features={**lowest, **h.features}, score=score) for h in additions
    ]
