"""N-best lists re-ranked by tuned weights, list by list."""

import dataclasses
import math
from collections.abc import Iterable, Iterator

from zoo import strict_json
from zoo.errors import UserError
from zoo.rescoring.weights import Weights
from zoo.sources import nbest
from zoo.sources.hypotheses import NBestList


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
    """Returns the weighted sum of features; raises UserError if it is not finite."""
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
    """Yields lines with their ends: all hypotheses of lists, or only the best of each.

    Lists in JSON are written as JSON, a list a line; others as id ||| words ||| features ||| score.
    """
    for one in lists:
        first = one.hypotheses[0]
        if best:
            yield best_line(one.id, first.text)
        elif form == "json":
            yield json_line(one)
        else:
            for h in one.hypotheses:
                yield nbest.line(one.id, h.words, h.features, h.score or 0.0, h.rest) + "\n"


def best_line(id: str, text: str) -> str:
    """Formats the best hypothesis of a list or lattice as in Kaldi, with a line break."""
    return f"{id} {text}".rstrip() + "\n"


def json_line(one: NBestList) -> str:
    """Returns a list as a line of JSON, which `zoo.sources.nbest` can read."""
    value: dict = {"id": one.id}
    value["hypotheses"] = [{"text": h.text, "score": h.score, **h.features} for h in one.hypotheses]
    if one.reference is not None:
        value["reference"] = one.reference
    return strict_json.dumps(value, ensure_ascii=False) + "\n"
