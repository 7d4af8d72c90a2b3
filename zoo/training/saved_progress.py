"""The progress of a run."""

import dataclasses
import math
import pathlib
import typing

from zoo.errors import UserError


@dataclasses.dataclass
class Progress:
    """The position of a run in its training, as its checkpoints keep it."""

    epoch: int = 0
    index: int = 0
    loss: float = 0.0  # the sum of the loss since the epoch's start, nats
    tokens: float = 0.0
    best: float = math.inf  # the lowest validation log-perplexity so far, nats
    best_step: int = 0
    stale: int = 0
    # seconds of training steps, over all interruptions; see `zoo.training.stopwatch`
    seconds: float = 0.0
    finished: bool = False
    data: str = ""
    penalty: float = 0.0
    # all validation log-perplexities, nats, in order
    validations: list[float] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, kept: dict, where: pathlib.Path) -> "Progress":
        """Converts the JSON of a checkpoint to a Progress."""
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
                if kind == list[float]:
                    right = type(value) is list and {*map(type, value)} <= {int, float}
                else:
                    kinds = (int, float) if kind is float else (kind,)
                    right = type(value) in kinds and (kind is not int or value >= 0)
                wrong = None if right else f"{value!r} as {name!r}, which is not {_KINDS[kind]}"
            if wrong:
                raise UserError(
                    f"{where} has {wrong}: put back a copy of it, or resume with the version of "
                    "Zoo that wrote it."
                )
        return cls(**kept)


_KINDS = {
    int: "a whole number from 0",
    float: "a number",
    bool: "true or false",
    str: "text",
    list[float]: "a list of numbers",
}
