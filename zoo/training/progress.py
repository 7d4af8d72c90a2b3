"""The progress of a run."""

import dataclasses
import math
import pathlib
import typing

from zoo.errors import UserError


@dataclasses.dataclass
class Progress:
    """Where a run is, as kept in its checkpoints; all plain numbers.

    epoch, index: the batch that comes next. loss, tokens, penalty: sums since the epoch's start.
    best: lowest validation log-perplexity, nats; best_step: where; stale: validations since.
    seconds: spent training, over all interruptions. finished: nothing is left to do.
    data: a hash of the training and validation text.
    """

    epoch: int = 0
    index: int = 0
    loss: float = 0.0
    tokens: float = 0.0
    best: float = math.inf
    best_step: int = 0
    stale: int = 0
    seconds: float = 0.0
    finished: bool = False
    data: str = ""
    penalty: float = 0.0

    @classmethod
    def of(cls, kept: dict, where: pathlib.Path) -> "Progress":
        """The progress that a checkpoint has.

        Args:
          kept: its JSON.
          where: the file that it was read from, for messages.

        Raises:
          UserError: a key is missing, is not known, or has a value of another type.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        kinds_of = typing.get_type_hints(cls)
        for name in [*fields, *kept]:
            wrong: str | None = None
            if name not in fields:
                wrong = f"the key {name!r}, which this version does not know"
            elif name not in kept:
                wrong = f"no key {name!r}"
            else:
                value, kind = kept[name], kinds_of[name]
                kinds = (int, float) if kind is float else (kind,)
                right = type(value) in kinds and (kind is not int or value >= 0)
                wrong = None if right else f"{value!r} as {name!r}, which is no {_KINDS[kind]}"
            if wrong:
                raise UserError(
                    f"{where} has {wrong}: put back a copy of it, or go on with the version of the "
                    "zoo that wrote it."
                )
        return cls(**kept)


_KINDS = {int: "whole number from 0", float: "number", bool: "true or false", str: "text"}
