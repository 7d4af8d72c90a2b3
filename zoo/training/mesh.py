"""Devices in two directions, (data, model), behind the interface of `zoo.training.devices`.

Lanes of a batch are shared out over the data axis, and rows of words, of parameters, of what the
optimiser keeps of them and of tables, over the model axis. One program is compiled for all devices;
the compiler finds what they have to send.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo.arrays.partition import FEATURES, WORDS, Axes
from zoo.errors import UserError
from zoo.training import parts
from zoo.training.devices import chosen

DATA, MODEL = "data", "model"


class MeshDevices:
    """The local devices as a mesh: lanes of a batch along one axis, words along the other.

    Methods are those of `Devices`. What is cut by words is cut by the numbers of a vector where
    words do not divide by the model axis, and lies whole on every device where these do not either.
    """

    # A step is of the whole batch: it has nothing to sum over devices by itself.
    axis = None
    # The lanes of this process, which is the only one.
    rows = slice(None)

    def __init__(
        self,
        count: int,
        batch: int,
        model: int,
        state: Any,
        parameter_axes: Axes,
        words: Sequence[int],
    ):
        """Lays out the first `count` local devices, all if 0.

        Args:
          batch: lanes, which must divide by the data axis.
          model: devices along the model axis, which must divide the devices.
          state: shapes of a TrainState, with the parameters in `params`.
          parameter_axes: names of the axes of the parameters; see Task.parameter_axes.
          words: sizes of the lexicons: tables with so many rows are cut by them.

        Raises:
          UserError: the mesh does not divide the devices or the batch, has more shards than there
            are words, or divides no parameter of words.
        """
        self.devices = chosen(count)
        self.count, self.model, self._words = len(self.devices), model, tuple(words)
        self.data = self._data_axis(batch)
        grid = np.array(self.devices).reshape(self.data, model)
        mesh = Mesh(grid, (DATA, MODEL), axis_types=(AxisType.Auto, AxisType.Auto))
        self._mesh = mesh
        self._replicated = NamedSharding(mesh, PartitionSpec())
        self._by_lanes = NamedSharding(mesh, PartitionSpec(DATA))
        self._not_by_rows: list[str] = []
        layouts = self._of_params(state.params, parameter_axes)
        leaves = jax.tree_util.tree_leaves_with_path(state._replace(carry=()))
        if self._not_by_rows and not layouts:
            raise UserError(
                f"parallel.model={model} divides neither the rows nor the columns of "
                f"{'; '.join(self._not_by_rows)}, so that nothing would be shared out: give a "
                "number that divides some, or parallel.model=1."
            )
        self._of_state = [self._of_leaf(parts.path_name(path), x, layouts) for path, x in leaves]

    def _data_axis(self, batch: int) -> int:
        """How many devices there are along the data axis; UserError for a mesh that is none."""
        count, model = self.count, self.model
        if count % model:
            raise UserError(
                f"parallel.model={model} does not divide the {count} devices: give one that does, "
                "or --devices."
            )
        if model > min(self._words):
            raise UserError(
                f"parallel.model={model} are more shards than there are words, "
                f"{min(self._words)}: give fewer."
            )
        data = count // model
        if batch % data:
            raise UserError(
                f"training.batch={batch} does not divide by the {data} devices along the data "
                f"axis, {count} by parallel.model={model}: set "
                f"training.batch={-(-batch // data) * data} or give --devices."
            )
        return data

    @property
    def summary(self) -> str:
        """The mesh in words, and the parameters that it does not cut by rows."""
        mesh = f"{self.count} device(s) as {self.data} (data) x {self.model} (model)"
        others = "; ".join(self._not_by_rows)
        return f"{mesh}, whose model axis does not divide the rows of {others}" if others else mesh

    def _of_params(self, params, parameter_axes) -> dict[str, tuple[tuple[int, ...], Any]]:
        """{path of a parameter: (its shape, how it lies)} of those that are cut."""
        layouts = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            name = parts.path_name(path)
            names = parameter_axes.get(name, ())
            axis = self._axis_to_cut(name, leaf.shape, names)
            if axis is not None:
                layouts[name] = leaf.shape, self._cut(axis)
        return layouts

    def _axis_to_cut(self, name, shape, names) -> int | None:
        """The axis of a parameter that is cut, None for none."""
        rows = [axis for axis, of in enumerate(names) if of in (WORDS, FEATURES)]
        if not rows:
            return None
        columns = [axis for axis in range(len(names)) if axis not in rows]
        fitting = [a for a in (*rows, *columns) if shape[a] and not shape[a] % self.model]
        if not fitting or fitting[0] not in rows:
            instead = "cut by columns" if fitting else "whole on every device"
            self._not_by_rows.append(f"{name} {[*shape]}, {instead}")
        return fitting[0] if fitting else None

    def _cut(self, axis: int) -> NamedSharding:
        return NamedSharding(self._mesh, PartitionSpec(*[None] * axis, MODEL))

    def _of_leaf(self, name, leaf, layouts) -> NamedSharding:
        """How a leaf of the state lies: as the parameter whose path is within its own, if it has
        its shape, so that the optimiser's sums and averages lie with what they are of."""
        names = name.replace(".", "/").split("/")  # a dot in those of tables updated by rows
        for first, end in itertools.combinations(range(len(names) + 1), 2):
            shape, layout = layouts.get("/".join(names[first:end]), (None, None))
            if shape == leaf.shape:
                return layout
        return self._replicated

    def compile(self, step, state_axes, **static):
        """step(state, tables, batch, key, axis=None, **static), compiled for the mesh.

        It gives (state, results). The state is donated and comes back as it lay.
        """

        def of_mesh(state, tables, batch, key):
            state, results = step(state, tables, batch, key, axis=None, **static)
            whole = jax.tree.map(lambda _: self._replicated, results)
            return jax.lax.with_sharding_constraint((state, results), (self._layouts(state), whole))

        return jax.jit(of_mesh, donate_argnums=0)

    def _layouts(self, state):
        """How each leaf of a state lies."""
        structure = jax.tree.structure(state._replace(carry=()))
        layouts = jax.tree.unflatten(structure, self._of_state)
        return layouts._replace(carry=jax.tree.map(lambda _: self._by_lanes, state.carry))

    def drawn(self, initial_state, key, taken: dict):
        """initial_state(key, taken), each device drawing its own part of every leaf.

        Random numbers depend neither on the mesh nor on where they are drawn.

        Args:
          initial_state: gives a TrainState.
          key: of its random numbers.
          taken: parts of its parameters that are on the host.
        """
        shapes = jax.eval_shape(initial_state, key, taken)
        layouts = self._layouts(shapes).params
        placed = {
            name: jax.tree.map(lambda x, of: _placed(np.asarray(x), of), part, layouts[name])
            for name, part in taken.items()
        }
        return self.drawing(initial_state, shapes)(key, placed)

    def drawing(self, initial_state, shapes):
        """The program of `drawn`, for a state of these shapes."""
        return jax.jit(initial_state, out_shardings=self._layouts(shapes))

    def laid_out(self, shapes):
        """Shapes of a state with their layouts, for a checkpoint to be read into; those of the
        carry without, for `split` lays it out."""
        placed = jax.tree.map(_laid_out, shapes, self._layouts(shapes))
        return placed._replace(carry=shapes.carry)

    def kept(self, tree):
        """A tree as a checkpoint takes it: as it lies, so that nothing is put together."""
        return tree

    def replicate(self, tree):
        """The tree on every device."""
        return jax.device_put(tree, self._replicated)

    def place_tables(self, tree):
        """Tables on the devices: those with a row a word cut by rows, where these divide."""

        return jax.tree.map(lambda x: jax.device_put(x, self._of_table(np.shape(x))), tree)

    def _of_table(self, shape) -> NamedSharding:
        """How a table of this shape lies."""
        cut = shape and shape[0] in self._words and shape[0] % self.model == 0
        return self._cut(0) if cut else self._replicated

    def step_shapes(self, state, tables, batch, key):
        """Shapes of the arguments of a compiled step with their layouts, to lower it by."""
        layouts = (
            self._layouts(state),
            jax.tree.map(lambda x: self._of_table(x.shape), tables),
            jax.tree.map(lambda _: self._by_lanes, batch),
            self._replicated,
        )
        return jax.tree.map(_laid_out, (state, tables, batch, key), layouts)

    def taken(self, leaves: list) -> list:
        """The leaves of the state without its carry as they lie, for a step to donate.

        The list is emptied leaf by leaf, so that each leaf is there twice only while it is placed.
        """
        placed = []
        leaves.reverse()
        for layout in self._of_state:
            leaf = leaves.pop()
            if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(layout, leaf.ndim):
                # As it was read: in memory that may be NumPy's.
                placed.append(jax.block_until_ready(jnp.array(leaf, copy=True)))
            else:
                # By way of the host: no device holds more than its part, and nothing is shared.
                placed.append(_placed(np.asarray(leaf), layout))
            if isinstance(leaf, jax.Array):
                leaf.delete()
            del leaf
        return placed

    def own(self, tree):
        """The tree: this process has all lanes."""
        return tree

    def split(self, tree):
        """Leaves [B, ...] shared out along the data axis."""
        return jax.device_put(tree, self._by_lanes)

    def join(self, tree):
        """The inverse of `split`, on the host."""
        return jax.device_get(tree)

    def alone(self, tree):
        """What programs of one device take: the tree as it lies, for they run on the mesh too."""
        return tree

    def first(self, tree):
        """One copy of a tree, whole, on the host."""
        return jax.device_get(tree)


def _laid_out(shape, layout: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=layout)


def _placed(array: np.ndarray, layout: NamedSharding) -> jax.Array:
    """A copy of an array of the host, each device's part in memory of its own."""
    indices = layout.addressable_devices_indices_map(array.shape)
    copies = [
        jax.device_put(array[index], device, may_alias=False) for device, index in indices.items()
    ]
    whole = jax.make_array_from_single_device_arrays(array.shape, layout, copies)
    return jax.block_until_ready(whole)
