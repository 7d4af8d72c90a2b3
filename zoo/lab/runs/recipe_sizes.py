"""Sizes of a recipe, checked against stored parameters and memory before its model is built.

A recipe may come from somebody else: a zero too many, or a billion layers, would take hours or all
memory before its parameters are found not to fit. All sizes here are lower bounds.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from zoo.base.arrays import memory
from zoo.configuration import fields
from zoo.errors import UserError
from zoo.models import LanguageModel

# Fields that count layers. Each layer has parameters of its own.
_REPEATS = ("layers", "highway")
# Bytes of the host's memory that tracing and compiling a layer takes at least (measured: 2.6 MB for
# each layer of an LSTM of 8 cells).
_LAYER_BYTES = 10**6
# Fields that are the length of an axis of parameters, or of a sum of several axes.
_PARAMETER_AXES = (
    *("size", "units", "projection", "letter_size", "correction", "components", "filters"),
    *("widths", "order", "words"),
)
# Fields that are at most the length of some array of float32 or int32.
_LENGTHS = (*_PARAMETER_AXES, "samples", "classes", "most", "stacks", "depth", "longest")
_NUMBER = 4  # bytes of a float32 or an int32


def model_memory(model: Any) -> Iterator[tuple[str, int]]:
    """Yields (setting, lower bound of the bytes it needs) for each size of a model."""
    for path, name, value in fields.values(model):
        if name in _LENGTHS and type(value) is int:
            yield f"model.{path}={value}", value * _NUMBER
        if name in _REPEATS and type(value) is int:
            yield f"model.{path}={value}", value * _LAYER_BYTES


def batch_memory(model: Any, recipe: Any, section: str, batch_rows: str) -> tuple[str, int]:
    """Returns (settings, lower bound of the bytes) of one batch; `recipe` is the experiment's part
    called `section`, whose field called `batch_rows` counts the rows."""
    rows, length, vector = getattr(recipe, batch_rows), 1, _NUMBER  # pairs have a word at least
    length_setting = ""
    if isinstance(model, LanguageModel):
        length, vector = recipe.length, _NUMBER * model.embedding.size  # into the core
        length_setting = f" x {section}.length={length}"
    # Words, targets, positions and two masks.
    size = rows * length * (4 + 4 + 8 + 1 + 1) + rows * length * vector
    return f"{section}.{batch_rows}={rows}{length_setting}", size


def check(experiment: Any, shapes: Sequence[tuple[int, ...]] | None, source: str):
    """Raises UserError if a recipe's sizes exceed the stored parameters, of these `shapes` (None:
    unknown), or the host's memory. `source` names the parameters in messages."""
    model = experiment.model
    if shapes is not None:
        parameters = sum(map(math.prod, shapes))
        for path, name, value in fields.values(model):
            limit = len(shapes) if name in _REPEATS else parameters
            is_size = name in (*_REPEATS, *_PARAMETER_AXES) and type(value) is int
            if is_size and value > limit:
                raise UserError(
                    f"{source} has {len(shapes)} arrays of {parameters:,} numbers in all, and the "
                    f"recipe has model.{path}={value}: put back a copy of the run."
                )
    for setting, needed in model_memory(model):
        memory.check(setting, needed, memory.host_memory())
    memory.check(*batch_memory(model, experiment.evaluation, "evaluation", "batch"))
