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
from zoo.lab.training.step import batch_shapes
from zoo.lab.training.updates import choose_updates
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel


def check(experiment: Experiment, lexicons: Sequence[Lexicon], devices: list):
    """Raises UserError if the least memory of a run does not fit; allocates nothing."""
    # Devices of the host share its memory; accelerators have one each.
    local_devices = [device for device in devices if device.process_index == jax.process_index()]
    sharing = len(local_devices) if devices[0].platform == "cpu" else 1
    for label, size in memory_needs(experiment, lexicons, sharing):
        memory.check(label, size)


def memory_needs(
    experiment: Experiment, lexicons: Sequence[Lexicon], devices: int = 1
) -> Iterator[tuple[str, int]]:
    """Yields (label, lower bound of bytes) of a run's needs, the cheapest to compute first."""
    model: Any = experiment.model
    training = experiment.training
    yield from recipe_sizes.model_memory(model)
    yield recipe_sizes.batch_memory(model, training, "training", "batch")
    yield recipe_sizes.batch_memory(model, experiment.evaluation, "evaluation", "batch")
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
    place = f" on {devices} devices" if devices > 1 else ""
    yield f"the state of this training (parameters, optimiser, carry){place}", copies * total


# ---- the time and memory of a training step, measured without a run being changed

# The fewest steps that are timed.
MIN_STEPS = 5
# Batches of an epoch that are looked through for their shapes.
_SAMPLE_SIZE = 64


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
    state, batches = trainer.draw_state({}), trainer.task.epoch(0)
    numbers = range(min(len(batches), _SAMPLE_SIZE))
    sample = [trainer.task.part(batches, number) for number in numbers]
    programs: dict[Any, Any] = {}
    for batch in sample:
        if batch_shapes(batch) not in programs:
            lowered = step_function.lower(state, tables, devices.split(batch), key)
            programs[batch_shapes(batch)] = lowered.compile()
    sizes = [_program_memory(program) for program in programs.values()]
    peak = max((count for count in sizes if count is not None), default=None)
    if not seconds:
        return StepCost(None, peak)
    fastest: dict[Any, float] = {}
    total, steps = 0.0, 0
    for batch in itertools.cycle(sample):
        start, shapes = time.perf_counter(), batch_shapes(batch)
        state, results = programs[shapes](state, tables, devices.split(batch), key)
        jax.block_until_ready(results)
        duration = time.perf_counter() - start
        fastest[shapes] = min(duration, fastest.get(shapes, duration))
        total, steps = total + duration, steps + 1
        if total >= seconds and steps >= MIN_STEPS:
            break
    times = [fastest[shapes] for shapes in map(batch_shapes, sample) if shapes in fastest]
    return StepCost(sum(times) / len(times), peak)


def _program_memory(program) -> int | None:
    """Returns the bytes of memory of a compiled step; None where XLA does not give them."""
    stats = program.memory_analysis()
    if stats is None:
        return None
    sizes = stats.argument_size_in_bytes, stats.output_size_in_bytes, stats.temp_size_in_bytes
    return sum(sizes) - stats.alias_size_in_bytes
