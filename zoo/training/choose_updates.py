"""The choice of updates: dense or row-sparse, with an average, as an experiment asks."""

from typing import Any

import optax

from zoo import optimizers
from zoo.errors import UserError
from zoo.experiment import Training
from zoo.training import average, parameter_groups, row_sparse
from zoo.training.updates import DenseUpdates, Updates, scale_by_rate_factor

# A table with fewer rows for each token of a batch is updated as fast as a whole (on CPU, 1,120
# tokens and 256 columns: the two are equal at 4,000 rows, and rows are faster at 10,000).
ROWS_A_TOKEN = 4


def choose_updates(
    recipe: Training, params: Any, paths: list[row_sparse.Path], epoch_steps: int, total_steps: int
) -> Updates:
    """Builds the updates that a training recipe asks for."""
    steps = epoch_steps, total_steps
    trained = [path for path in paths if path[0] not in recipe.frozen]
    if recipe.row_sparse:
        _check_rows(recipe, paths, trained)
    elif recipe.row_sparse is None:
        trained = _where_exact(recipe, params, trained)
    if trained and recipe.row_sparse is not False:
        return row_sparse.RowSparseUpdates(
            recipe.optimizer, recipe.clip, trained, *steps, recipe.rates
        )
    transformation = optimizers.build(recipe.optimizer, recipe.clip, *steps)
    if recipe.rates:
        transformation = optax.chain(transformation, parameter_groups.scale_updates(recipe.rates))
    if recipe.windows:
        transformation = optax.chain(transformation, scale_by_rate_factor())
    if recipe.average:
        transformation = optax.chain(transformation, average.keep_average(recipe.average))
    if recipe.average_after is not None:
        mean = average.keep_mean(begun=not recipe.average_after)
        transformation = optax.chain(transformation, mean)
    return DenseUpdates(transformation)


def _where_exact(recipe, params, paths):
    """Returns the paths of tables that updates by rows change as dense updates do, but faster."""
    averaged = recipe.average or recipe.average_after is not None
    if not row_sparse.is_exact(recipe.optimizer) or recipe.accumulate > 1 or averaged:
        return []
    least = ROWS_A_TOKEN * recipe.batch * recipe.length
    tables = row_sparse.split(params, paths)[1]
    return [path for path, table in tables.items() if table.shape[0] >= least]


def _check_rows(recipe, paths, trained):
    """Raises UserError if a recipe asks for updates by rows that it does not allow."""
    if recipe.accumulate > 1:
        raise UserError(
            f"training.accumulate={recipe.accumulate} adds up the gradients of whole tables, which "
            "training.row_sparse=True is there to avoid: leave one of them out."
        )
    averages = {"average": recipe.average or None, "average_after": recipe.average_after}
    for name, value in averages.items():
        if value is not None:
            raise UserError(
                f"training.{name}={value} touches all rows of every table at each step, which "
                "training.row_sparse=True is there to avoid: leave one of them out."
            )
    if paths and not trained:
        raise UserError(
            "training.row_sparse=True, but the tables that are read by rows are frozen: leave it "
            "out."
        )
    if not trained:
        raise UserError(
            "training.row_sparse=True, but every step of this model reads all rows of its tables: "
            "take a sampled head, or leave it out."
        )
