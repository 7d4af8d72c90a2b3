"""Names of the axes of parameters, and their shardings on a mesh of devices by these names.

A component names the axes of each parameter: words, features, or hidden states. The caller who
shards a model chooses the mesh axis along which they are cut.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# Axes of words, or of groups of words, which grow with the lexicon.
WORDS = "words"
FEATURES = "features"
# The axis of a hidden state, or of a word's vector of the same size.
HIDDEN = "hidden"
NAMES = (WORDS, FEATURES, HIDDEN)

# {path of a parameter, "a/b" for b within a: a name or None for each of its axes}.
Axes: TypeAlias = Mapping[str, tuple[str | None, ...]]


def axes(**of_parameters: tuple[str | None, ...]) -> Axes:
    """Makes an immutable mapping of the names of the axes of parameters."""
    return MappingProxyType(of_parameters)


def path_name(path) -> str:
    """Formats the path of a parameter in a pytree, such as "head/network/bias"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def named(shapes: Any, parameter_axes: Axes) -> Any:
    """Makes a tree like `shapes` with the names of the axes of each array, as a `PartitionSpec`."""

    def of_array(path, array):
        name = path_name(path)
        names = parameter_axes.get(name, (None,) * len(array.shape))
        if len(names) != len(array.shape):
            raise ValueError(
                f"{name} has the shape {array.shape} and the axis names {names}: give a name or "
                "None for each axis"
            )
        return PartitionSpec(*names)

    return jax.tree.map_with_path(of_array, shapes)


def _divides(devices: int, size: int) -> bool:
    return size > 0 and size % devices == 0


class Layout(NamedTuple):
    """The sharding of parameters on a mesh."""

    shardings: Any
    # descriptions of the parameters of words or features whose rows are not divisible by the
    # devices, such as "bias [13], whole on every device"
    not_by_rows: tuple[str, ...]


def on_mesh(component: Any, shapes: Any, mesh: Mesh, axis: str = "model") -> Layout:
    """Shards the words or features of the parameters of a head or an embedding over a mesh.

    Example:
      >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
      >>> layout = on_mesh(heads.Softmax(), params, mesh)
      >>> layout.shardings["weights"].spec, layout.not_by_rows
      (PartitionSpec('model',), ())
    """
    return cut_by_rows(component.parameter_axes, shapes, mesh, axis)


def cut_by_rows(parameter_axes: Axes, shapes: Any, mesh: Mesh, axis: str) -> Layout:
    """Shards parameters by the names of their axes.

    Rows of words or features are cut if their number is divisible by the devices along the axis;
    otherwise the columns of the same parameter are cut. All other parameters are replicated.
    """
    if axis not in mesh.shape:
        raise ValueError(
            f"mesh has the axes {', '.join(mesh.shape)} and no {axis!r}: give one of them as axis"
        )
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
