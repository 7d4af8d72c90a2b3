"""What a training costs: least memory, from shapes alone, and a step's time and memory, measured.

The lower bounds count the parameters, the optimiser's state, the carry, and the arrays of a batch.
A run that passes may still need more memory than there is; a run that is refused cannot fit, mostly
because of a zero too many in its recipe.
"""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax

from zoo.base.arrays import memory
from zoo.experiment import Experiment
from zoo.lab.runs import recipe_sizes
from zoo.lab.training.step import shapes_of
from zoo.lab.training.updates import choose_updates
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel


def check(experiment: Experiment, lexicons: Sequence[Lexicon], devices: list):
    """Checks that the least memory of a run fits the machine; nothing is allocated."""
    # Devices of the host share its memory; accelerators have one each.
    shared = len(devices) if devices[0].platform == "cpu" else 1
    for what, needed in needs(experiment, lexicons, shared):
        memory.check(what, needed)


def needs(
    experiment: Experiment, lexicons: Sequence[Lexicon], devices: int = 1
) -> Iterator[tuple[str, int]]:
    """Yields (name, least bytes) of the needs of a run, the cheapest to compute first."""
    model = experiment.model
    yield from recipe_sizes.model_memory(model)
    yield recipe_sizes.batch_memory(model, experiment.training, "training", "batch")
    yield recipe_sizes.batch_memory(model, experiment.evaluation, "evaluation", "batch")
    yield _of_state(experiment, lexicons, devices)


def _of_state(experiment, lexicons, devices):
    """Returns (name, least bytes) of the training state on some devices."""
    model, training = experiment.model, experiment.training
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), *lexicons))
    trees = [shapes]
    if isinstance(model, LanguageModel):
        trees.append(jax.eval_shape(lambda: model.initial_carry(training.batch)))
    # Whether they have the frozen parts is checked later.
    trained = {name: part for name, part in shapes.items() if name not in training.frozen}
    optimizer = choose_updates(training, shapes, model.row_tables(shapes), 1, 10**9)
    trees.append(jax.eval_shape(optimizer.init, trained))
    total = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))
    # With words sharded, `parallel.model` devices together hold at least one copy.
    copies = max(1, devices // experiment.parallel.model)
    on = f" on {devices} devices" if devices > 1 else ""
    return f"the state of this training (parameters, optimiser, carry){on}", copies * total


# ---- the time and memory of a training step, measured without a run being changed

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


def measure(trainer, seconds: float) -> StepCost:
    """Measures the steps of the first epoch from the state before training, for some time."""
    devices, step_function = trainer.devices, trainer.step_function()
    tables, key = devices.place_tables(trainer.task.tables), trainer.step_key()
    state, batches = trainer.drawn_state({}), trainer.task.epoch(0)
    programs: dict[Any, Any] = {}
    looked_at = [batches[index] for index in range(min(len(batches), _LOOKED_AT))]
    for batch in looked_at:
        parts = devices.split(batch)
        if (shapes := shapes_of(parts)) not in programs:
            programs[shapes] = step_function.lower(state, tables, parts, key).compile()
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
