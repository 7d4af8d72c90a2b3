"""Names of the axes of parameters, and their shardings on a mesh of devices by these names."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# A component names the axes of each parameter: words, features, or hidden states. The caller who
# shards a model chooses the mesh axis along which they are cut.

# Axes of words, or of groups of words, which grow with the lexicon.
WORDS = "words"
FEATURES = "features"
# The axis of a hidden state, or of a word's vector of the same size.
HIDDEN = "hidden"
# The axis of a word's vector of another size than the hidden state, in arrays without `HIDDEN`.
VECTOR = "vector"
NAMES = (WORDS, FEATURES, HIDDEN, VECTOR)

# {path of a parameter, "a/b" for b within a: a name or None for each of its axes}.
Axes: TypeAlias = Mapping[str, tuple[str | None, ...]]


def axes(**names_by_parameter: tuple[str | None, ...]) -> Axes:
    """Makes an immutable mapping of the names of the axes of parameters."""
    return MappingProxyType(names_by_parameter)


def path_name(path: tuple) -> str:
    """Formats the path of a parameter in a pytree, such as "head/network/bias"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def partition_specs(shapes: Any, parameter_axes: Axes) -> Any:
    """Makes a tree like `shapes` with the names of the axes of each array, as a `PartitionSpec`."""

    def spec_of_array(path, array):
        name = path_name(path)
        names = parameter_axes.get(name, (None,) * len(array.shape))
        if len(names) != len(array.shape):
            raise ValueError(
                f"{name} has the shape {array.shape} and the axis names {names}: give a name or "
                "None for each axis"
            )
        return PartitionSpec(*names)

    return jax.tree.map_with_path(spec_of_array, shapes)


class Layout(NamedTuple):
    """The sharding of parameters on a mesh."""

    shardings: Any
    # descriptions of the parameters of words or features whose rows are not divisible by the
    # devices, such as "bias [13], whole on every device"
    not_by_rows: tuple[str, ...]


def on_mesh(component: Any, shapes: Any, mesh: Mesh, axis: str = "model") -> Layout:
    """Shards the words or features of the parameters of a head or an embedding over a mesh.

    Rows are cut if their number is divisible by the devices along the axis; otherwise the columns
    of the same parameter are. All other parameters are replicated.

    Args:
      component: a head or an embedding.
      shapes: its parameters, or their shapes.
      mesh: the devices.
      axis: the axis of the mesh along which parameters are cut.

    Returns:
      A `Layout`: shardings, a tree like the parameters; not_by_rows, a sentence about each
      parameter of words or features that is not cut by rows.

    Raises:
      ValueError: the mesh has no such axis.

    Example:
      >>> head, mesh = heads.Softmax(), jax.make_mesh((1, 1), ("data", "model"))
      >>> layout = heads.on_mesh(head, head.init(key, 4, lexicon), mesh)
      >>> layout.shardings["weights"].spec[0], layout.not_by_rows
      ('model', ())
    """
    return cut_by_rows(component.parameter_axes, shapes, mesh, axis)


def cut_by_rows(parameter_axes: Axes, shapes, mesh: Mesh, axis: str, pad: bool = False) -> Layout:
    """Shards parameters by the names of their axes, as `on_mesh` does; with `pad`, also by rows
    that are not divisible, if there are at least as many as devices."""
    if axis not in mesh.shape:
        raise ValueError(
            f"mesh has the axes {', '.join(mesh.shape)} and no {axis!r}: give one of them as axis"
        )
    not_by_rows = []

    def shard(path, array, names):
        rows = [number for number, name in enumerate(names) if name in (WORDS, FEATURES)]
        columns = [number for number in range(len(names)) if rows and number not in rows]
        sizes = array.shape
        divisible = (n for n in (*rows, *columns) if sizes[n] and sizes[n] % mesh.shape[axis] == 0)
        cut = next(divisible, None)
        if rows and cut not in rows:
            description = "whole on every device" if cut is None else "cut by columns"
            not_by_rows.append(f"{path_name(path)} {[*array.shape]}, {description}")
            if pad and sizes[rows[0]] >= mesh.shape[axis]:
                cut = rows[0]
        spec = () if cut is None else (*[None] * cut, axis)
        return NamedSharding(mesh, PartitionSpec(*spec))

    shardings = jax.tree.map_with_path(shard, shapes, partition_specs(shapes, parameter_axes))
    return Layout(shardings, tuple(not_by_rows))
