"""Updates of parameters by gradients: the interface of a training step, and dense updates."""

from collections.abc import Callable
from typing import Any

import jax
import optax

from zoo import optimizers
from zoo.errors import UserError
from zoo.experiment import Training
from zoo.lab.training import average
from zoo.lab.training.devices import sum_over_devices
from zoo.row_updates import Path, RowUpdates, SparseGradients, row_rule, split


class Updates:
    """Updates of all parameters by an optax transformation, as a training step calls them."""

    def __init__(self, transformation: optax.GradientTransformation):
        self.transformation = optax.with_extra_args_support(transformation)

    def init(self, params) -> Any:
        """Returns the optimiser's state before the first step."""
        return self.transformation.init(params)

    def value_and_gradients(self, objective: Callable) -> Callable:
        """Returns (params, batch_rows) -> ((value, auxiliary), gradients) of an objective."""
        return jax.value_and_grad(objective, has_aux=True)

    def sum_over_devices(self, gradients, params, axis: str | None) -> Any:
        """Sums gradients over the devices of a named axis."""
        return sum_over_devices(gradients, axis)

    def update(
        self, params, state, step, gradients, rate_factor: float = 1.0
    ) -> tuple[Any, Any, jax.Array]:
        """Updates parameters; returns (params, state, norm of the gradients before clipping)."""
        updates, state = self.transformation.update(
            gradients, state, params, rate_factor=rate_factor
        )
        return optax.apply_updates(params, updates), state, optax.tree.norm(gradients)


def scale_by_rate_factor() -> optax.GradientTransformationExtraArgs:
    """Multiplies updates by the `rate_factor` of `Updates.update`."""

    def update(updates, state, params=None, *, rate_factor=1.0, **options):
        return jax.tree.map(lambda update: update * rate_factor, updates), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


class RowSparseUpdates(RowUpdates, Updates):
    """Updates of tables by their touched rows, with a factor of the rate for some parameters."""

    setting = "training.row_sparse"

    def __init__(
        self,
        recipe,
        clip: float,
        paths: list[Path],
        epoch_steps: int,
        total_steps: int,
        rates: tuple[tuple[str, float], ...] = (),
    ):
        super().__init__(recipe, paths, clip, epoch_steps, total_steps)
        if rates:
            self.dense = optax.chain(self.dense, average.scale_updates(rates))
        self.factors = {path: average.rate_factor(rates, "/".join(path)) for path in paths}

    def sum_over_devices(self, gradients, params, axis):
        """Sums dense gradients over the devices of a named axis, and gathers the rows of all."""
        dense, lookups = gradients
        if axis is not None:
            lookups = jax.tree.map(lambda x: jax.lax.all_gather(x, axis, tiled=True), lookups)
        return SparseGradients(sum_over_devices(dense, axis), lookups)


# ------ the choice of updates: dense or row-sparse, with an average, as an experiment asks

# A table with fewer rows for each token of a batch is updated as fast as a whole (on CPU, 1,120
# tokens and 256 columns: the two are equal at 4,000 rows, and rows are faster at 10,000).
ROWS_PER_TOKEN = 4


def choose_updates(
    recipe: Training, params: Any, paths: list[Path], epoch_steps: int, total_steps: int
) -> Updates:
    """Builds the updates that a training recipe asks for."""
    steps = epoch_steps, total_steps
    bound = "training.steps" if recipe.steps == total_steps else "training.epochs"
    recipe.optimizer.schedule.check_length(total_steps, bound)
    trained_paths = [path for path in paths if path[0] not in recipe.frozen]
    if recipe.row_sparse:
        _check_rows(recipe, paths, trained_paths)
    elif recipe.row_sparse is None:
        trained_paths = _exact_paths(recipe, params, trained_paths)
    if trained_paths and recipe.row_sparse is not False:
        return RowSparseUpdates(recipe.optimizer, recipe.clip, trained_paths, *steps, recipe.rates)
    transformation = optimizers.build(recipe.optimizer, recipe.clip, *steps)
    if recipe.rates:
        transformation = optax.chain(transformation, average.scale_updates(recipe.rates))
    if recipe.windows:
        transformation = optax.chain(transformation, scale_by_rate_factor())
    if recipe.average:
        transformation = optax.chain(transformation, average.keep_average(recipe.average))
    if recipe.average_after is not None:
        mean = average.keep_mean(is_averaging=not recipe.average_after)
        transformation = optax.chain(transformation, mean)
    return Updates(transformation)


def _exact_paths(recipe, params, paths):
    """Returns the paths of tables for which updates by rows equal dense updates, but are faster."""
    has_average = recipe.average or recipe.average_after is not None
    rule = row_rule(recipe.optimizer, 1)
    if rule is None or not rule.exact or recipe.accumulate > 1 or has_average:
        return []
    min_rows = ROWS_PER_TOKEN * recipe.batch * recipe.length
    tables = split(params, paths)[1]
    return [path for path, table in tables.items() if table.shape[0] >= min_rows]


def _check_rows(recipe, paths, trained_paths):
    """Raises UserError if a recipe asks for updates by rows that it does not allow."""
    dense_settings = {
        "accumulate": recipe.accumulate if recipe.accumulate > 1 else None,
        "average": recipe.average or None,
        "average_after": recipe.average_after,
    }
    for name, value in dense_settings.items():
        if value is not None:
            raise UserError(
                f"training.{name}={value} touches all rows of every table at each step, which "
                "training.row_sparse=True is there to avoid: leave one of them out."
            )
    if paths and not trained_paths:
        raise UserError(
            "training.row_sparse=True, but the tables that are read by rows are frozen: leave it "
            "out."
        )
    if not trained_paths:
        raise UserError(
            "training.row_sparse=True, but every step of this model reads all rows of its tables: "
            "take a sampled head, or leave it out."
        )
