"""Updates of tables by rows: training steps whose cost does not grow with the vocabulary.

A lookup or a sampled loss reads some thousand rows of the word tables, but its dense gradient,
clipping and update would still walk over all V rows. Here gradients are taken with respect to the
rows that a step looks up, not to their tables (`zoo.base.arrays.row_lookup.Watched`). The gradients
of a row that was looked up more than once are summed, and the update touches these rows only, in
the donated buffers of the tables and of the optimiser's state.

The example begins with

    >>> import jax.numpy as jnp
    >>> from zoo import optimizers
    >>> from zoo.base.arrays.row_lookup import take
    >>> from zoo.row_updates import RowUpdates
"""

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


class RowUpdates:
    """Updates of tables by the rows that a step reads, and of all other parameters by optax.

    The tables are read by rows alone, as `Head.row_tables` lists them: their gradients, and the
    optimiser's work on them, are of the rows that a step looked up. Parameters are nested dicts.
    SGD without momentum and Adagrad give the parameters of the dense optimiser, up to rounding;
    Adam becomes lazy: the moments of a row decay only when the row is read.

    Args:
      recipe: an optimiser of `zoo.optimizers`: SGD without momentum, Adagrad, or Adam, without
        weight decay.
      paths: the tables, such as [("head", "weights"), ("head", "bias")].
      clip: the greatest norm of all gradients; 0 for no clipping.
      epoch_steps, total_steps: the lengths by which the schedule of the rate goes.

    The state is {"dense": optax's, "rows": {path such as "embedding.table": the rule's}}.

    Raises:
      UserError: the optimiser has no rule for rows.

    Example:
      >>> updates = RowUpdates(optimizers.SGD(0.5), [("table",)])
      >>> params, ids = {"table": jnp.ones((4, 2))}, jnp.array([2, 2])
      >>> loss = lambda params, ids: (take(params["table"], ids).sum(), None)
      >>> value, gradients = updates.value_and_gradients(loss)(params, ids)
      >>> params, state, norm = updates.update(params, updates.init(params), 0, gradients)
      >>> print(params["table"][:, 0])
      [1. 1. 0. 1.]
    """

    setting = "RowUpdates"

    def __init__(
        self,
        recipe: optimizers.Optimizer,
        paths: list[Path],
        clip: float = 0.0,
        epoch_steps: int = 1,
        total_steps: int = 1,
    ):
        self.paths, self.clip, self.rule = paths, clip, row_rule(recipe, epoch_steps)
        if self.rule is None:
            raise UserError(
                f"{self.setting} cannot update rows by {recipe}: take SGD without momentum, "
                "Adagrad, or Adam, without weight decay."
            )
        self.dense = recipe.build(epoch_steps, total_steps)
        self.factors = dict.fromkeys(paths, 1.0)
        self.rate = recipe.rate(epoch_steps, total_steps)

    def init(self, params):
        dense, tables = split(params, self.paths)
        rows = {_dotted(path): self.rule.init(table) for path, table in tables.items()}
        return {"dense": self.dense.init(dense), "rows": rows}

    def value_and_gradients(self, objective: Callable) -> Callable:
        """Returns (params, batch) -> ((value, auxiliary), SparseGradients) of an objective."""
        return functools.partial(self._row_gradients, objective)

    def _row_gradients(self, objective, params, batch):
        dense, tables = split(params, self.paths)

        def watched_objective(dense, offsets):
            watchers = {path: Watched(table, offsets.get(path)) for path, table in tables.items()}
            value, auxiliary = objective(join(dense, watchers), batch)
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

    def update(self, params, state, step, gradients, rate_factor=1.0):
        """Clips the gradients by their common norm, and updates dense parameters and rows.

        Returns (parameters, state, the norm before clipping); `step` counts from 0.
        """
        dense_gradients, lookups = gradients
        dense, tables = split(params, self.paths)
        row_gradients = {
            path: merge_rows(lookups[path][0], lookups[path][1], table.shape[0])
            for path, table in tables.items()
        }
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
