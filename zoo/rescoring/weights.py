"""Files of feature weights, in JSON, which `rescore tune` writes and `rescore apply` reads."""

import dataclasses
import json
import math
from typing import Any

from zoo import strict_json
from zoo.errors import UserError, named, shortened
from zoo.rescoring.nbest_arrays import Lists
from zoo.sources import files


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
        value = {"weights": self.weights, **added, "made": self.made}
        return strict_json.dumps(value, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: str) -> "Weights":
        """Reads the weights of a file; raises UserError if it is not a file of weights."""
        file = files.find(path)
        text = files.read_text(file)
        try:
            value = strict_json.loads(text)
            strict_json.check(value, {"weights": dict})
            strict_json.check(value.get("added", []), [str], "added")
            weights = value["weights"]
            if not weights:
                raise ValueError("there are none")
        except ValueError as error:
            raise UserError(
                f'{file} has no weights ({error}): write {{"weights": {{"name": 0.5}}}}.'
            ) from error
        for name, weight in weights.items():
            if not strict_json.is_number(weight):
                raise UserError(
                    f"{file}: the weight of {shortened(name)!r} is {shortened(json.dumps(weight))}"
                    ": give a finite number."
                )
        made = value.get("made")
        return cls(
            {n: float(w) for n, w in weights.items()},
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
            what = [f"without a weight are {named(unweighted)}"] if unweighted else []
            what += [f"without a feature are {named(absent)}"] if absent else []
            raise UserError(
                f"{where}: the features do not match the weights; {' and '.join(what)}: give "
                "the runs, counts and lattices that were given to tune."
            )

    def check_added(self, names: tuple[str, ...], where: str):
        """Raises UserError unless the features that are added to lists are those of the tuning.

        Args:
          names: of the added features.
          where: the file of the weights.
        """
        if self.added is not None and {*names} != {*self.added}:
            tuned, here = (named([*some]) if some else "none" for some in (self.added, names))
            raise UserError(
                f"{where}: tune added the features {tuned}, and here {here} are added: give the "
                "runs, counts and lattices that were given to tune."
            )

    def of(self, lists: Lists):
        """Returns the weights as an array in the order of the lists' features; 0 without one."""
        import numpy as np

        return np.array([self.weights.get(name, 0.0) for name in lists.names])
