"""The choice of updates: dense or row-sparse, with an average, as an experiment asks."""

import optax

from zoo import optimizers
from zoo.errors import UserError
from zoo.experiment import Training
from zoo.training import average, parameter_groups, row_sparse
from zoo.training.updates import DenseUpdates, Updates


def choose_updates(
    recipe: Training, paths: list[row_sparse.Path], epoch_steps: int, total_steps: int
) -> Updates:
    """Builds the updates that a training recipe asks for.

    Args:
      recipe: the optimiser, clipping, rates, and whether tables are updated by rows.
      paths: paths of the tables of which one step reads only some rows; see Task.row_tables.
      epoch_steps: steps of an epoch, for schedules.
      total_steps: steps of all epochs, for schedules.

    Raises:
      UserError: row_sparse is combined with an average or accumulated gradients, or no table is
        trained by rows.
    """
    steps = epoch_steps, total_steps
    if not recipe.row_sparse:
        transformation = optimizers.build(recipe.optimizer, recipe.clip, *steps)
        if recipe.rates:
            transformation = optax.chain(
                transformation, parameter_groups.scale_updates(recipe.rates)
            )
        if recipe.average:
            transformation = optax.chain(transformation, average.keep_average(recipe.average))
        return DenseUpdates(transformation)
    if recipe.accumulate > 1:
        raise UserError(
            f"training.accumulate={recipe.accumulate} adds up the gradients of whole tables, which "
            "training.row_sparse=True is there to avoid: leave one of them out."
        )
    if recipe.average:
        raise UserError(
            f"training.average={recipe.average} touches all rows of every table at each step, "
            "which training.row_sparse=True is there to avoid: leave one of them out."
        )
    if paths and all(path[0] in recipe.frozen for path in paths):
        raise UserError(
            "training.row_sparse=True, but the tables that are read by rows are frozen: leave it "
            "out."
        )
    paths = [path for path in paths if path[0] not in recipe.frozen]
    if not paths:
        raise UserError(
            "training.row_sparse=True, but every step of this model reads all rows of its tables: "
            "take a sampled head, or leave it out."
        )
    return row_sparse.RowSparseUpdates(recipe.optimizer, recipe.clip, paths, *steps, recipe.rates)
