"""A training step and the shapes of its arguments, to be lowered and analysed without being run.

From shapes alone any machine can trace a step of billions of parameters, and lower it for devices
that the machine does not have.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from zoo.base.arrays import sharded_functions
from zoo.experiment import Experiment
from zoo.lab.training import average
from zoo.lab.training.loop import Trainer
from zoo.lab.training.step import Batch, TrainState, settings, train_step
from zoo.lab.training.tasks import Words, words_loss
from zoo.lab.training.updates import choose_updates
from zoo.lexicon import Lexicon

# Steps of an epoch for schedules: no text is read that would give their number.
EPOCH_STEPS = 1_000_000


class StepShapes(NamedTuple):
    """A training step and the shapes of its arguments."""

    function: Any  # functools.partial of the step, with its settings
    arguments: tuple

    def lowered(self, *platforms: str) -> export.Exported:
        """Lowers the step for platforms as JAX calls them: "cpu", "cuda", "tpu"."""
        jitted = jax.jit(self.function, donate_argnums=0)
        with sharded_functions.for_any_platform():
            return export.export(jitted, platforms=platforms)(*self.arguments)


def from_trainer(trainer: Trainer) -> StepShapes:
    """Returns the step of a trainer on one device, with the shapes of its first batch."""
    function = functools.partial(train_step, **trainer.step_settings())
    state, task = jax.eval_shape(trainer.initial_state), trainer.task
    return StepShapes(
        function, (state, *_shapes((task.tables, task.part(task.epoch(0), 0), _key())))
    )


def from_language_model(experiment: Experiment, lexicon: Lexicon) -> StepShapes:
    """Returns the step of a language model on one device, without reading any text."""
    model, recipe = experiment.language_model, experiment.training
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), lexicon))
    optimizer = choose_updates(
        recipe, params, model.row_tables(params), EPOCH_STEPS, EPOCH_STEPS * recipe.epochs
    )
    state = TrainState(
        params,
        jax.eval_shape(optimizer.init, average.split(params, recipe.frozen)[0]),
        jax.eval_shape(lambda: model.initial_carry(recipe.batch)),
        _shape((), jnp.int32),
    )
    function = functools.partial(
        train_step,
        loss=functools.partial(words_loss, model),
        usual_weight=float(recipe.batch * recipe.length),
        usual_length=recipe.length if recipe.windows else 0,
        **settings(recipe, optimizer),
    )
    size = recipe.batch, recipe.length
    words, reset, weights = _shape(size, jnp.int32), _shape(size, bool), _shape(size, jnp.float32)
    batch = Batch(Words(words, words, reset), weights, _shape((recipe.batch,), jnp.int32))
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
