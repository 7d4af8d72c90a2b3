"""Names of the axes of parameters, and layouts on a mesh of devices made of them.

A component says of each parameter which of its axes are of words, of features, and of hidden
states. Whoever lays out a model says which axis of a mesh cuts them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# Rows that are of words, or of what words are grouped into: they grow with the lexicon.
WORDS = "words"
FEATURES = "features"
# Numbers of a hidden state, or of a word's vector that is as long.
HIDDEN = "hidden"
NAMES = (WORDS, FEATURES, HIDDEN)

# {path of a parameter, "a/b" for b within a: a name or None for each of its axes}.
Axes: TypeAlias = Mapping[str, tuple[str | None, ...]]


def axes(**of_parameters: tuple[str | None, ...]) -> Axes:
    """The names of the axes of some parameters, which cannot be changed."""
    return MappingProxyType(of_parameters)


def path_name(path) -> str:
    """The path of a parameter in a pytree as text, such as "head/network/bias"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def named(shapes: Any, parameter_axes: Axes) -> Any:
    """A tree like `shapes` with the names of the axes of each array, as a `PartitionSpec`.

    Args:
      shapes: arrays, or what `jax.eval_shape` gives.
      parameter_axes: those that have names; axes of other arrays have none.

    Raises:
      ValueError: an array has another number of axes than it has names.
    """

    def of_array(path, array):
        name = path_name(path)
        names = parameter_axes.get(name, (None,) * len(array.shape))
        if len(names) != len(array.shape):
            raise ValueError(f"{name} has the shape {array.shape} and the names {names}")
        return PartitionSpec(*names)

    return jax.tree.map_with_path(of_array, shapes)


def _divides(devices: int, size: int) -> bool:
    return size > 0 and size % devices == 0


class Layout(NamedTuple):
    """How parameters lie on a mesh.

    Attributes:
      shardings: a tree like the parameters of `NamedSharding`s, as `jax.device_put` and the
        `in_shardings` of `jax.jit` take it.
      not_by_rows: the parameters of words or features whose rows do not divide, each in words, such
        as "bias [13], whole on every device".
    """

    shardings: Any
    not_by_rows: tuple[str, ...]


def on_mesh(component: Any, shapes: Any, mesh: Mesh, axis: str = "model") -> Layout:
    """Lays out the parameters of a head or an embedding, whose words or features are shared out.

    Args:
      component: the head or embedding.
      shapes: its parameters, or their shapes, as `jax.eval_shape` gives them.
      mesh: the devices.
      axis: the axis of the mesh along which words and features lie.

    Raises:
      ValueError: the mesh does not have the axis.

    Example:
      >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
      >>> layout = on_mesh(heads.Softmax(), params, mesh)
      >>> layout.shardings["weights"].spec, layout.not_by_rows
      (PartitionSpec('model',), ())
    """
    return cut_by_rows(component.parameter_axes, shapes, mesh, axis)


def cut_by_rows(parameter_axes: Axes, shapes: Any, mesh: Mesh, axis: str) -> Layout:
    """Lays out parameters by the names of their axes.

    Rows of words or features are cut where their number divides by the devices along the axis, the
    columns of the same parameter where it does not. Everything else lies whole on every device.

    Args:
      parameter_axes: names of the axes; see `named`.
      shapes: arrays, or what `jax.eval_shape` gives.
      mesh: the devices.
      axis: an axis of the mesh.

    Raises:
      ValueError: the mesh does not have the axis; or see `named`.
    """
    if axis not in mesh.shape:
        raise ValueError(f"mesh has the axes {', '.join(mesh.shape)} and no {axis!r}: give axis")
    not_by_rows = []

    def of_array(path, array, names):
        rows = [number for number, name in enumerate(names) if name in (WORDS, FEATURES)]
        columns = [number for number in range(len(names)) if rows and number not in rows]
        cut = next(
            (n for n in (*rows, *columns) if _divides(mesh.shape[axis], array.shape[n])), None
        )
        if rows and cut not in rows:
            how = "whole on every device" if cut is None else "cut by columns"
            not_by_rows.append(f"{path_name(path)} {[*array.shape]}, {how}")
        spec = () if cut is None else (*[None] * cut, axis)
        return NamedSharding(mesh, PartitionSpec(*spec))

    shardings = jax.tree.map_with_path(of_array, shapes, named(shapes, parameter_axes))
    return Layout(shardings, tuple(not_by_rows))
