"""The cost of a training step: its time and memory, measured without a run being changed."""

import itertools
import time
from typing import Any, NamedTuple

import jax

from zoo.training.loop import Trainer, shapes_of

# The fewest steps that are timed.
LEAST = 5
# Batches of an epoch that are looked through for their shapes.
_LOOKED_AT = 64


class StepCost(NamedTuple):
    """The cost of a training step."""

    # time of a step, without compilation: the mean over shapes of batches of the fastest step with
    # that shape, which other work on the machine disturbs least; None if none was timed
    seconds: float | None
    # greatest memory of a device within a step, by XLA's own account: arguments, results and
    # temporary arrays; None where XLA does not give one
    bytes: int | None


def measure(trainer: Trainer, seconds: float) -> StepCost:
    """Measures the steps of the first epoch from the state before training, for some time."""
    devices, step_function = trainer.devices, trainer.step_function()
    tables, key = devices.place_tables(trainer.task.tables), trainer.step_key()
    state, batches = trainer.drawn_state({}), trainer.task.epoch(0)
    programs: dict[Any, Any] = {}
    looked_at = [batches[index] for index in range(min(len(batches), _LOOKED_AT))]
    for batch in looked_at:
        parts = devices.split(batch)
        if (shapes := shapes_of(parts)) not in programs:
            programs[shapes] = step_function.lower(state, tables, parts, key).compile()  # type: ignore[attr-defined]
    needed = [_bytes(program) for program in programs.values()]
    most = max((count for count in needed if count is not None), default=None)
    if not seconds:
        return StepCost(None, most)
    order = [shapes_of(batch) for batch in map(devices.split, looked_at)]
    fastest: dict[Any, float] = {}
    spent, steps = 0.0, 0
    for batch in itertools.cycle(looked_at):
        begun = time.perf_counter()
        parts = devices.split(batch)
        state, results = programs[shapes_of(parts)](state, tables, parts, key)
        jax.block_until_ready(results)
        took = time.perf_counter() - begun
        fastest[shapes_of(parts)] = min(took, fastest.get(shapes_of(parts), took))
        spent, steps = spent + took, steps + 1
        if spent >= seconds and steps >= LEAST:
            break
    times = [fastest[shapes] for shapes in order if shapes in fastest]
    return StepCost(sum(times) / len(times), most)


def _bytes(program) -> int | None:
    """Returns the memory of a compiled step; None where XLA does not give it."""
    found = program.memory_analysis()
    if found is None:
        return None
    sizes = found.argument_size_in_bytes, found.output_size_in_bytes, found.temp_size_in_bytes
    return sum(sizes) - found.alias_size_in_bytes
