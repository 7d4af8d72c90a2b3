"""Updates of parameters by gradients: the interface of a training step, and dense updates."""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from zoo import optimizers
from zoo.base.arrays.row_lookup import Watched
from zoo.errors import UserError
from zoo.experiment import Training
from zoo.lab.training import average
from zoo.lab.training.devices import sum_over_devices


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


# ----------------------------- training steps whose cost does not grow with the vocabulary
# A lookup or a sampled loss reads some thousand rows of the word tables, but its dense gradient,
# clipping and update would still walk over all V rows. Here gradients are taken with respect to the
# rows that a step looks up, not to their tables (`zoo.base.arrays.row_lookup.Watched`). Those of a
# row that was looked up more than once are summed, and the update touches these rows only, in the
# donated buffers of the tables and of the optimiser's state. For SGD without momentum and for
# Adagrad this equals the dense update up to rounding, for neither changes a row without gradient.
# Adam becomes lazy: the moments of a row decay only when the row is touched.

Path = tuple[str, ...]


class RowGradient(NamedTuple):
    """The gradient of a table, as its nonzero rows."""

    # int32 [n], numbers of rows, ascending and distinct, padded with V, V + 1, ..., which scatters
    # drop
    ids: jax.Array
    rows: jax.Array  # [n, *row], the gradient of each row


def merge_rows(ids, rows, size: int) -> RowGradient:
    """Sums the gradients of equal row ids of a table with `size` rows."""
    count = ids.shape[0]
    order = jnp.argsort(ids)
    ids, rows = ids[order], rows[order]
    is_first = jnp.concatenate([jnp.ones(1, bool), ids[1:] != ids[:-1]])
    slot = jnp.cumsum(is_first) - 1
    sums = jax.ops.segment_sum(rows, slot, count, indices_are_sorted=True)
    # Padding ids differ too, for scatters rely on unique ids.
    return RowGradient((size + jnp.arange(count, dtype=ids.dtype)).at[slot].set(ids), sums)


# ---------------------------------------------------------------- updates of rows

_SCATTER = {"mode": "drop", "indices_are_sorted": True, "unique_indices": True}


@dataclasses.dataclass(frozen=True)
class RowSGD:
    """SGD without momentum: row -= rate g."""

    exact = True  # equals the dense update up to rounding

    def init(self, table):
        return ()

    def update(self, table, state, gradient, rate, count):
        """Returns (table, state) after step `count`."""
        return table.at[gradient.ids].add(-rate * gradient.rows, **_SCATTER), state


@dataclasses.dataclass(frozen=True)
class RowAdagrad:
    """Adagrad: s += g^2, row -= rate g / sqrt(s + epsilon), as optax.adagrad."""

    initial_accumulator: float
    reset_interval: int = 0
    resets: int = 0
    epsilon: float = 1e-7
    exact = True

    def init(self, table):
        return jnp.full_like(table, self.initial_accumulator)

    def update(self, table, state, gradient, rate, count):
        ids, rows = gradient
        if self.reset_interval:
            is_reset = optimizers.history_ends(count - 1, self.reset_interval, self.resets)
            # Not a selection: all but one step in thousands must leave the other rows alone.
            state = jax.lax.cond(is_reset, self.init, lambda sums: sums, state)
        sums = state.at[ids].get(mode="fill", fill_value=0) + rows * rows
        step = jnp.where(sums > 0, rows * jax.lax.rsqrt(sums + self.epsilon), 0)
        return table.at[ids].add(-rate * step, **_SCATTER), state.at[ids].set(sums, **_SCATTER)


@dataclasses.dataclass(frozen=True)
class RowAdam:
    """Lazy Adam: only steps that touch a row decay its moments; the bias correction counts all."""

    beta1: float
    beta2: float
    epsilon: float
    exact = False

    def init(self, table):
        return jnp.zeros_like(table), jnp.zeros_like(table)

    def update(self, table, state, gradient, rate, count):
        ids, rows = gradient
        mean, square = (moment.at[ids].get(mode="fill", fill_value=0) for moment in state)
        mean = self.beta1 * mean + (1 - self.beta1) * rows
        square = self.beta2 * square + (1 - self.beta2) * rows * rows
        corrected = jnp.sqrt(square / (1 - self.beta2**count)) + self.epsilon
        step = mean / (1 - self.beta1**count) / corrected
        moments = tuple(
            moment.at[ids].set(update, **_SCATTER)
            for moment, update in zip(state, (mean, square), strict=True)
        )
        return table.at[ids].add(-rate * step, **_SCATTER), moments


def row_rule(recipe: optimizers.Optimizer, epoch_steps: int) -> Any:
    """Returns the rule that updates rows as an optimiser does; None if it has none."""
    match recipe:
        case optimizers.SGD(momentum=0.0, weight_decay=0.0):
            return RowSGD()
        case optimizers.Adagrad():
            reset_steps = recipe.reset_every * epoch_steps
            return RowAdagrad(recipe.initial_accumulator, reset_steps, recipe.resets)
        case optimizers.Adam(weight_decay=0.0):
            return RowAdam(recipe.beta1, recipe.beta2, recipe.epsilon)
    return None


class SparseGradients(NamedTuple):
    """Gradients of parameters: dense, but for some tables whose gradients are row-sparse."""

    dense: Any
    # gradients of the tables by path: (ids [n], rows [n, *row]) of each device, or a RowGradient
    # once gradients of equal ids are merged
    rows: dict[Path, Any]


class RowSparseUpdates(Updates):
    """Updates of tables by their touched rows, and of all other parameters by optax; the state is
    {"dense": optax's, "rows": {path such as "embedding.table": the rule's}}."""

    def __init__(
        self,
        recipe,
        clip: float,
        paths: list[Path],
        epoch_steps: int,
        total_steps: int,
        rates: tuple[tuple[str, float], ...] = (),
    ):
        """Builds the optimiser of the dense parameters and the rule for the rows of tables."""
        self.paths, self.clip, self.rule = paths, clip, row_rule(recipe, epoch_steps)
        if self.rule is None:
            raise UserError(
                f"training.row_sparse cannot update rows by {recipe}: take SGD without momentum, "
                "Adagrad, or Adam, without weight decay."
            )
        self.dense = recipe.build(epoch_steps, total_steps)
        if rates:
            self.dense = optax.chain(self.dense, average.scale_updates(rates))
        self.factors = {path: average.rate_factor(rates, "/".join(path)) for path in paths}
        self.rate = recipe.rate(epoch_steps, total_steps)

    def init(self, params):
        dense, tables = split(params, self.paths)
        rows = {_dotted(path): self.rule.init(table) for path, table in tables.items()}
        return {"dense": self.dense.init(dense), "rows": rows}

    def value_and_gradients(self, objective):
        """Returns a function that computes ((value, auxiliary), SparseGradients)."""
        return functools.partial(self._row_gradients, objective)

    def _row_gradients(self, objective, params, batch_rows):
        dense, tables = split(params, self.paths)

        def watched_objective(dense, offsets):
            watchers = {path: Watched(table, offsets.get(path)) for path, table in tables.items()}
            value, auxiliary = objective(join(dense, watchers), batch_rows)
            return value, (auxiliary, {path: watcher.ids for path, watcher in watchers.items()})

        # A first, abstract run tells the number of rows of each lookup, to which zeros are then
        # added whose gradients are the gradients of the rows.
        _, (_, ids) = jax.eval_shape(lambda dense: watched_objective(dense, {}), dense)
        offsets = {
            path: [
                jnp.zeros((*i.shape, *tables[path].shape[1:]), tables[path].dtype) for i in path_ids
            ]
            for path, path_ids in ids.items()
        }
        (value, (auxiliary, ids)), (dense_gradients, rows) = jax.value_and_grad(
            watched_objective, argnums=(0, 1), has_aux=True
        )(dense, offsets)
        lookups = {}
        for path, table in tables.items():
            shape = (-1, *table.shape[1:])
            lookups[path] = (
                jnp.concatenate([i.reshape(-1) for i in ids[path]]),
                jnp.concatenate([r.reshape(shape) for r in rows[path]]),
            )
        return (value, auxiliary), SparseGradients(dense_gradients, lookups)

    def sum_over_devices(self, gradients, params, axis):
        """Sums gradients over the devices of a named axis, and merges rows of equal ids."""
        dense, lookups = gradients
        dense = sum_over_devices(dense, axis)
        if axis is not None:  # rows differ between devices: every device gets the rows of all
            lookups = jax.tree.map(lambda x: jax.lax.all_gather(x, axis, tiled=True), lookups)
        rows = {
            path: merge_rows(lookups[path][0], lookups[path][1], table.shape[0])
            for path, table in split(params, self.paths)[1].items()
        }
        return SparseGradients(dense, rows)

    def update(self, params, state, step, gradients, rate_factor=1.0):
        """Clips the gradients by their common norm, and updates dense parameters and rows."""
        dense_gradients, row_gradients = gradients
        dense, tables = split(params, self.paths)
        norm = optax.tree.norm((dense_gradients, [g.rows for g in row_gradients.values()]))
        scale = jnp.minimum(1.0, self.clip / norm) if self.clip else 1.0
        dense_gradients = jax.tree.map(lambda g: g * scale, dense_gradients)
        updates, dense_state = self.dense.update(dense_gradients, state["dense"], dense)
        updates = jax.tree.map(lambda update: update * rate_factor, updates)
        dense = optax.apply_updates(dense, updates)
        row_states = {}
        for path, gradient in row_gradients.items():
            name, gradient = _dotted(path), gradient._replace(rows=gradient.rows * scale)
            tables[path], row_states[name] = self.rule.update(
                tables[path],
                state["rows"][name],
                gradient,
                self.rate(step) * self.factors[path] * rate_factor,
                step + 1,
            )
        return join(dense, tables), {"dense": dense_state, "rows": row_states}, norm


def _dotted(path: Path) -> str:
    """Joins a path by dots, as the optimiser's state names it."""
    return ".".join(path)


def split(params: dict, paths: list[Path]) -> tuple[dict, dict[Path, jax.Array]]:
    """Splits parameters into (all others, {path: table})."""
    tables: dict = {path: functools.reduce(operator.getitem, path, params) for path in paths}
    return _without(params, paths), tables


def _without(params, paths):
    """Removes the paths from nested parameters."""
    if not paths:
        return params
    return {
        name: _without(part, [path[1:] for path in paths if path[0] == name])
        for name, part in params.items()
        if (name,) not in paths
    }


def join(dense: dict, tables: dict[Path, Any]) -> dict:
    """Puts tables back into parameters: the inverse of `split`."""
    for path, table in tables.items():
        dense = _with(dense, path, table)
    return dense


def _with(params, path, table):
    """Adds a table at a path of nested parameters."""
    name, *subpath = path
    return {**params, name: _with(params[name], subpath, table) if subpath else table}


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
