"""Devices in two directions, (data, model), behind the interface of `zoo.training.devices`.

Lanes of a batch are shared out over the data axis, and rows of words, of parameters, of what the
optimiser keeps of them and of tables, over the model axis. One program is compiled for all devices;
the compiler finds what they have to send.

Several processes have one mesh of all their devices. What one of them does alone, process 0's
drawing, validation and checkpoints, is done on a mesh of its own devices, on which the model axis
is as long, or as long as it has devices.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as Layout

from zoo.arrays.partition import FEATURES, WORDS, Axes
from zoo.errors import UserError
from zoo.processes.group import ALONE, Processes
from zoo.training import host_copies, parts
from zoo.training.devices import chosen, of_all, one_by_one

DATA, MODEL = "data", "model"
WHOLE, BY_LANES = Layout(), Layout(DATA)


class MeshDevices:
    """Devices as a mesh: lanes of a batch along one axis, words along the other.

    Methods are those of `Devices`. What is cut by words is cut by the numbers of a vector where
    words do not divide by the model axis, and lies whole on every device where these do not either.
    """

    # A step is of the whole batch: it has nothing to sum over devices by itself.
    axis = None

    def __init__(
        self,
        count: int,
        batch: int,
        model: int,
        state: Any,
        parameter_axes: Axes,
        words: Sequence[int],
        processes: Processes = ALONE,
    ):
        """Lays out the first `count` devices of each process, all if 0.

        Args:
          batch: lanes, which must divide by the data axis.
          model: devices along the model axis, which must divide the devices; of several processes,
            those of each, or be a multiple of these.
          state: shapes of a TrainState, with the parameters in `params`.
          parameter_axes: names of the axes of the parameters; see Task.parameter_axes.
          words: sizes of the lexicons: tables with so many rows are cut by them.
          processes: this one among the others.

        Raises:
          UserError: another process has fewer devices; the mesh does not divide the devices or the
            batch, has more shards than there are words, or divides no parameter of words.
        """
        self.devices, self.processes = chosen(count), processes
        everywhere = of_all(processes, self.devices)
        self.count, self.model, self._words = len(everywhere), model, tuple(words)
        self.data = self._data_axis(batch)
        self._mesh = _mesh(everywhere, model)
        own = len(self.devices)
        # On which this process works alone.
        self._own_mesh = _mesh(self.devices, min(model, own)) if processes.count > 1 else self._mesh
        # The lanes of a batch that this process has: those of its devices.
        self.batch, self.rows = batch, slice(None)
        if processes.count > 1:
            first, last = processes.index * own // model, ((processes.index + 1) * own - 1) // model
            lanes = batch // self.data
            self.rows = slice(first * lanes, (last + 1) * lanes)
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
        own = len(self.devices)
        if own % model and model % own:
            raise UserError(
                f"parallel.model={model} neither divides the {own} devices of each process nor is "
                "a multiple of them: give one that does, or --devices."
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
        if self.processes.count > 1:
            mesh += f" of {self.processes.count} processes"
        others = "; ".join(self._not_by_rows)
        return f"{mesh}, whose model axis does not divide the rows of {others}" if others else mesh

    def _of_params(self, params, parameter_axes) -> dict[str, tuple[tuple[int, ...], Layout]]:
        """{path of a parameter: (its shape, how it lies)} of those that are cut."""
        layouts = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            name = parts.path_name(path)
            names = parameter_axes.get(name, ())
            axis = self._axis_to_cut(name, leaf.shape, names)
            if axis is not None:
                layouts[name] = leaf.shape, _cut(axis)
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

    def _of_leaf(self, name, leaf, layouts) -> Layout:
        """How a leaf of the state lies: as the parameter whose path is within its own, if it has
        its shape, so that the optimiser's sums and averages lie with what they are of."""
        names = name.replace(".", "/").split("/")  # a dot in those of tables updated by rows
        for first, end in itertools.combinations(range(len(names) + 1), 2):
            shape, layout = layouts.get("/".join(names[first:end]), (None, None))
            if shape == leaf.shape:
                return layout
        return WHOLE

    def compile(self, step, state_axes, **static):
        """step(state, tables, batch, key, axis=None, **static), compiled for the mesh.

        It gives (state, results). The state is donated and comes back as it lay.
        """

        def of_mesh(state, tables, batch, key):
            state, results = step(state, tables, batch, key, axis=None, **static)
            whole = jax.tree.map(lambda _: NamedSharding(self._mesh, WHOLE), results)
            return jax.lax.with_sharding_constraint((state, results), (self._layouts(state), whole))

        return jax.jit(of_mesh, donate_argnums=0)

    def _layouts(self, state, mesh=None):
        """How each leaf of a state lies on a mesh, by default that of all devices."""
        structure = jax.tree.structure(state._replace(carry=()))
        layouts = jax.tree.unflatten(structure, self._of_state)
        layouts = layouts._replace(carry=jax.tree.map(lambda _: BY_LANES, state.carry))
        return jax.tree.map(
            lambda layout: NamedSharding(mesh or self._mesh, layout),
            layouts,
            is_leaf=lambda x: isinstance(x, Layout),
        )

    def drawn(self, initial_state, key, taken: dict):
        """initial_state(key, taken), each device of this process drawing its part of every leaf.

        Random numbers depend neither on the mesh nor on where they are drawn.

        Args:
          initial_state: gives a TrainState.
          key: of its random numbers.
          taken: parts of its parameters that are on the host.
        """
        shapes = jax.eval_shape(initial_state, key, taken)
        layouts = self._layouts(shapes, self._own_mesh).params
        placed = {
            name: jax.tree.map(
                lambda x, of: host_copies.placed(np.asarray(x), of), part, layouts[name]
            )
            for name, part in taken.items()
        }
        return self.drawing(initial_state, shapes)(key, placed)

    def drawing(self, initial_state, shapes):
        """The program of `drawn`, for a state of these shapes."""
        return jax.jit(initial_state, out_shardings=self._layouts(shapes, self._own_mesh))

    def laid_out(self, shapes):
        """Shapes of a state with their layouts on the devices of this process, for a checkpoint to
        be read into; those of the carry without, for `split` lays it out."""
        placed = jax.tree.map(_laid_out, shapes, self._layouts(shapes, self._own_mesh))
        return placed._replace(carry=shapes.carry)

    def kept(self, tree):
        """A tree as a checkpoint takes it: in parts on the devices of this process where these have
        all parts, else on the host of process 0; all processes have to ask for it."""
        if not self._has_all_parts:
            whole = jax.tree.map(host_copies.whole, tree)
            return whole if self.processes.first else jax.tree.map(lambda _: None, tree)
        return self.alone(tree)

    @property
    def _has_all_parts(self) -> bool:
        """Whether the model axis lies within each process."""
        return len(self.devices) % self.model == 0

    def replicate(self, tree):
        """The tree on every device."""
        return jax.tree.map(lambda x: self._on_devices(x, WHOLE), tree)

    def place_tables(self, tree):
        """Tables on the devices: those with a row a word cut by rows, where these divide."""
        return jax.tree.map(lambda x: self._on_devices(x, self._of_table(np.shape(x))), tree)

    def _on_devices(self, leaf, layout: Layout) -> jax.Array:
        sharding = NamedSharding(self._mesh, layout)
        if self.processes.count == 1:
            return jax.device_put(leaf, sharding)
        # Not device_put, which would compare the arrays of the processes.
        return host_copies.put(np.asarray(leaf), sharding)

    def _of_table(self, shape) -> Layout:
        """How a table of this shape lies."""
        cut = shape and shape[0] in self._words and shape[0] % self.model == 0
        return _cut(0) if cut else WHOLE

    def step_shapes(self, state, tables, batch, key):
        """Shapes of the arguments of a compiled step with their layouts, to lower it by."""
        layouts = (
            self._layouts(state),
            jax.tree.map(lambda x: NamedSharding(self._mesh, self._of_table(x.shape)), tables),
            jax.tree.map(lambda _: NamedSharding(self._mesh, BY_LANES), batch),
            NamedSharding(self._mesh, WHOLE),
        )
        return jax.tree.map(_laid_out, (state, tables, batch, key), layouts)

    def taken(self, leaves: Iterable) -> list:
        """The leaves of the state without its carry as they lie, for a step to donate.

        A list is emptied leaf by leaf, so that each leaf is there twice only while it is placed.
        """
        placed, layouts = [], iter(self._of_state)
        for leaf in one_by_one(leaves):
            layout = NamedSharding(self._mesh, next(layouts))
            if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(layout, leaf.ndim):
                # As it was read: in memory that may be NumPy's.
                placed.append(jax.block_until_ready(jnp.array(leaf, copy=True)))
            else:
                # By way of the host: no device holds more than its part, and nothing is shared.
                placed.append(host_copies.placed(np.asarray(leaf), layout))
            if isinstance(leaf, jax.Array):
                leaf.delete()
            del leaf
        return placed

    def own(self, tree):
        """The rows of leaves [B, ...] that this process has; the tree itself if it is alone."""
        return tree if self.processes.count == 1 else jax.tree.map(lambda x: x[self.rows], tree)

    def split(self, tree):
        """Leaves [B, ...] of this process shared out along the data axis."""
        layout = NamedSharding(self._mesh, BY_LANES)
        if self.processes.count == 1:
            return jax.device_put(tree, layout)
        return jax.tree.map(
            lambda x: host_copies.put(np.asarray(x), layout, self.batch, self.rows), tree
        )

    def join(self, tree):
        """The inverse of `own` and `split`, on the host."""
        if self.processes.count == 1:
            return jax.device_get(tree)
        return jax.tree.map(host_copies.whole, tree)

    def alone(self, tree):
        """What programs of this process alone take: the tree on its own devices; all processes
        have to ask for it.

        Nothing is copied where the model axis lies within each process. Elsewhere leaves are put
        together on the host, one by one, and process 0 alone has what comes out.
        """
        return tree if self.processes.count == 1 else jax.tree.map(self._alone, tree)

    def _alone(self, leaf):
        layout = NamedSharding(self._own_mesh, leaf.sharding.spec)
        if self._has_all_parts:
            own = [shard.data for shard in leaf.addressable_shards]
            return jax.make_array_from_single_device_arrays(leaf.shape, layout, own)
        array = host_copies.whole(leaf)
        return host_copies.placed(array, layout) if self.processes.first else None

    def first(self, tree):
        """One copy of a tree, whole, on the host; all processes have to ask for it."""
        return (
            jax.tree.map(host_copies.whole, tree)
            if self.processes.count > 1
            else jax.device_get(tree)
        )


def _mesh(devices: list, model: int) -> Mesh:
    grid = np.array(devices).reshape(-1, model)
    return Mesh(grid, (DATA, MODEL), axis_types=(AxisType.Auto, AxisType.Auto))


def _cut(axis: int) -> Layout:
    return Layout(*[None] * axis, MODEL)


def _laid_out(shape, layout: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=layout)
