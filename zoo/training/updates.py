"""What a step does to the parameters, as an experiment's training asks for it."""

from typing import Any

import optax

from zoo import optimizers
from zoo.errors import UserError
from zoo.experiment import Training
from zoo.models import LanguageModel
from zoo.training import average, parts, row_sparse
from zoo.training.step import train_step


def chosen(
    recipe: Training, model: LanguageModel, shapes: dict, epoch_steps: int, total_steps: int
) -> tuple[Any, Any]:
    """(the training step, the optimiser that it is for).

    Args:
      shapes: those of the model's parameters. epoch_steps, total_steps: for schedules.

    Raises:
      UserError: row_sparse together with an average, or where no table is trained by rows.
    """
    steps = epoch_steps, total_steps
    if not recipe.row_sparse:
        optimizer = optimizers.build(recipe.optimizer, recipe.clip, *steps)
        if recipe.rates:
            optimizer = optax.chain(optimizer, parts.scaled(recipe.rates))
        if recipe.average:
            optimizer = optax.chain(optimizer, average.kept(recipe.average))
        return train_step, optimizer
    if recipe.average:
        raise UserError(
            f"training.average={recipe.average} touches all rows of every table at each step, "
            "which training.row_sparse=True is there to avoid: leave one of them out."
        )
    paths = model.row_tables(shapes)
    if paths and all(path[0] in recipe.frozen for path in paths):
        raise UserError(
            "training.row_sparse=True, but the tables that are read by rows are frozen: leave it "
            "out."
        )
    paths = [path for path in paths if path[0] not in recipe.frozen]
    if not paths:
        raise UserError(
            f"training.row_sparse=True, but every step of a {type(model.head).__name__} reads all "
            "rows of its tables: take a sampled head, or leave it out."
        )
    optimizer = row_sparse.RowSparseOptimizer(
        recipe.optimizer, recipe.clip, paths, *steps, recipe.rates
    )
    return row_sparse.train_step, optimizer
