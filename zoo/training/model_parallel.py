"""Words sharded over devices: a (data, model) mesh, whose communication the compiler inserts.

Rows of words, in parameters, in the optimiser's state and in tables, lie along the model axis; rows
of a batch lie along the data axis.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from zoo.arrays.sharded_functions import Axes, cut_by_rows, path_name
from zoo.errors import UserError
from zoo.experiment import Parallel
from zoo.training.devices import MODEL, Devices, PmapDevices, chosen, laid_out, placed
from zoo.training.step import TrainState
from zoo.training.task import Task

_WHOLE = PartitionSpec()


class MeshDevices(Devices):
    """Devices along two axes: rows of a batch along one, words along the other.

    A parameter of words whose rows do not divide by the model axis is sharded by columns; if its
    columns do not divide either, it is replicated.
    """

    def __init__(
        self,
        count: int,
        batch: int,
        model: int,
        state: Any,
        parameter_axes: Axes,
        words: Sequence[int],
    ):
        """Makes a mesh of the first `count` devices of each process."""
        if model > min(words):
            raise UserError(
                f"parallel.model={model} are more shards than there are words, {min(words)}: give "
                "a smaller number."
            )
        super().__init__(count, batch, model)
        self.model, self._words = model, tuple(words)
        of_params = cut_by_rows(parameter_axes, state.params, self.mesh, MODEL)
        self._not_by_rows = of_params.not_by_rows
        layouts = {
            path_name(path): (leaf.shape, sharding.spec)
            for (path, leaf), sharding in zip(
                jax.tree_util.tree_leaves_with_path(state.params),
                jax.tree.leaves(of_params.shardings),
                strict=True,
            )
            if len(sharding.spec)
        }
        leaves = jax.tree_util.tree_leaves_with_path(state._replace(carry=()))
        if self._not_by_rows and not layouts:
            raise UserError(
                f"parallel.model={model} divides neither the rows nor the columns of "
                f"{'; '.join(self._not_by_rows)}, so that nothing would be sharded: give a number "
                "that divides some, or parallel.model=1."
            )
        self._of_state = [self._of_leaf(path_name(path), x, layouts) for path, x in leaves]

    @property
    def summary(self) -> str:
        """The mesh in words, and the parameters that it does not cut by rows."""
        data = self.count // self.model
        mesh = f"{super().summary} as {data} (data) x {self.model} (model)"
        others = "; ".join(self._not_by_rows)
        return f"{mesh}, whose model axis does not divide the rows of {others}" if others else mesh

    def _of_leaf(self, name, leaf, layouts) -> PartitionSpec:
        """Chooses the layout of a leaf of the state.

        A leaf whose path contains the path of a sharded parameter of the same shape is sharded as
        that parameter: so the optimiser's moments and averages lie with their parameters. Other
        leaves are replicated.
        """
        names = name.replace(".", "/").split("/")  # a dot in those of tables updated by rows
        for first, end in itertools.combinations(range(len(names) + 1), 2):
            shape, layout = layouts.get("/".join(names[first:end]), (None, None))
            if shape == leaf.shape:
                return layout
        return _WHOLE

    def layouts(self, state):
        """Returns the sharding of each leaf of a TrainState; see Devices.layouts."""
        structure = jax.tree.structure(state._replace(carry=()))
        layouts = [NamedSharding(self.mesh, layout) for layout in self._of_state]
        carry = jax.tree.map(lambda _: self.by_rows, state.carry)
        return jax.tree.unflatten(structure, layouts)._replace(carry=carry)

    def compile(self, step, state_axes, **static):
        """Compiles a step whose new state keeps the layout of the old; see Devices.compile."""

        def of_mesh(state, tables, batch, key):
            state, results = step(state, tables, batch, key, axis=None, **static)
            whole = jax.tree.map(lambda _: self.replicated, results)
            return jax.lax.with_sharding_constraint((state, results), (self.layouts(state), whole))

        return jax.jit(of_mesh, donate_argnums=0)

    def place_tables(self, tree):
        """Puts tables on the devices; a table with one row a word is sharded if its rows divide."""
        return jax.tree.map(lambda x: placed(x, self._of_table(np.shape(x))), tree)

    def _of_table(self, shape) -> NamedSharding:
        """Returns the sharding of a table of this shape."""
        cut = shape and shape[0] in self._words and shape[0] % self.model == 0
        return NamedSharding(self.mesh, PartitionSpec(MODEL) if cut else _WHOLE)

    def step_shapes(self, state, tables, batch, key):
        """Returns the shapes of a compiled step's arguments with shardings, to lower it."""
        layouts = (
            self.layouts(state),
            jax.tree.map(lambda x: self._of_table(x.shape), tables),
            jax.tree.map(lambda _: self.by_rows, batch),
            self.replicated,
        )
        return jax.tree.map(laid_out, (state, tables, batch, key), layouts)


# ------ the choice of devices: one, several by `jax.pmap`, or a mesh that shards the words


def choose_devices(
    count: int, batch: int, parallel: Parallel, task: Task, initial_state: Callable[[], TrainState]
) -> Devices:
    """Chooses the devices that train a task together."""
    if parallel.model == 1:
        return (Devices if len(chosen(count)) == 1 else PmapDevices)(count, batch)
    state = jax.eval_shape(initial_state)
    words = [len(lexicon) for lexicon in task.lexicons.values()]
    return MeshDevices(count, batch, parallel.model, state, task.parameter_axes, words)
