"""A training step and the shapes of its arguments, to be lowered and analysed without being run.

From shapes alone any machine can trace a step of billions of parameters, and lower it for devices
that the machine does not have.
"""

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.training import average
from zoo.training.loop import Trainer, shapes_of
from zoo.training.step import TrainState, train_step
from zoo.training.task import Batch, Task
from zoo.training.tasks import Words, words_loss
from zoo.training.updates import choose_updates

# Steps of an epoch for schedules, where there is no text to count them from.
EPOCH_STEPS = 1_000_000


class StepShapes(NamedTuple):
    """A training step and the shapes of its arguments."""

    function: Callable
    arguments: tuple[Any, Any, Batch, Any]

    def lowered(self, *platforms: str) -> export.Exported:
        """Lowers the step for platforms as JAX calls them: "cpu", "cuda", "tpu"."""
        jitted = jax.jit(self.function, donate_argnums=0)
        return export.export(jitted, platforms=platforms)(*self.arguments)


def of_task(task: Task, experiment: Experiment, initial_state: Callable) -> StepShapes:
    """Returns the step of a task on one device, with the shapes of its first batch."""
    shapes = jax.eval_shape(initial_state)
    optimizer = choose_updates(
        experiment.training,
        shapes.params,
        task.row_tables(shapes.params),
        task.epoch_steps,
        task.total_steps,
    )
    function = functools.partial(
        train_step,
        loss=task.loss,
        optimizer=optimizer,
        frozen=experiment.training.frozen,
        usual_weight=task.usual_weight,
        usual_length=task.usual_length,
        mean_over=experiment.training.mean_over,
        accumulate=experiment.training.accumulate,
        compute=experiment.training.compute,
    )
    return StepShapes(function, (shapes, *_shapes((task.tables, task.epoch(0)[0], _key()))))


def of_language_model(experiment: Experiment, lexicon: Lexicon, devices: int = 1) -> StepShapes:
    """Returns the step of a language model on one device, without reading any text."""
    model, recipe = experiment.language_model, experiment.training
    batch_rows = recipe.batch // devices
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), lexicon))
    optimizer = choose_updates(
        recipe, params, model.row_tables(params), EPOCH_STEPS, EPOCH_STEPS * recipe.epochs
    )
    state = TrainState(
        params,
        jax.eval_shape(optimizer.init, average.split(params, recipe.frozen)[0]),
        jax.eval_shape(lambda: model.initial_carry(batch_rows)),
        _shape((), jnp.int32),
    )
    function = functools.partial(
        train_step,
        loss=functools.partial(words_loss, model),
        optimizer=optimizer,
        frozen=recipe.frozen,
        usual_weight=float(recipe.batch * recipe.length),
        usual_length=recipe.length if recipe.windows else 0,
        mean_over=recipe.mean_over,
        accumulate=recipe.accumulate,
        compute=recipe.compute,
    )
    size = batch_rows, recipe.length
    words, reset, weights = _shape(size, jnp.int32), _shape(size, bool), _shape(size, jnp.float32)
    batch = Batch(Words(words, words, reset), weights, _shape((batch_rows,), jnp.int32))
    return StepShapes(function, (state, *_shapes((model.tables(lexicon), batch, _key()))))


def ranked_lexicon(size: int, boundary: str = "</s>", unknown: str = "<unk>") -> Lexicon:
    """Makes a stand-in for a lexicon of a size: its words are numbers, with counts as 1/rank."""
    words = (boundary, unknown, *map(str, range(size - 2)))
    counts = np.ceil(1e8 / np.arange(1, size + 1)).astype(np.int64)
    return Lexicon(words=words, counts=counts, boundary=boundary, unknown=unknown)


def _key():
    return _shape((2,), jnp.uint32)


def _shape(shape, dtype) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def _shapes(tree: Sequence[Any]) -> Any:
    def shape(leaf):
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        leaf = jnp.asarray(leaf) if np.isscalar(leaf) else leaf
        return _shape(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype))

    return jax.tree.map(shape, tree)


# ---- the cost of a training step: its time and memory, measured without a run being changed

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
