"""Names of the axes of parameters, and layouts on a mesh of devices made of them.

A component says of each parameter which of its axes are of words, of features, and of hidden
states. Which axis of a mesh cuts them is the affair of whoever lays out a model.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import jax
from jax.sharding import PartitionSpec

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


def named(shapes: Any, parameter_axes: Axes) -> Any:
    """A tree like `shapes` with the names of the axes of each array, as a `PartitionSpec`.

    Args:
      shapes: arrays, or what `jax.eval_shape` gives.
      parameter_axes: those that have names; axes of other arrays have none.

    Raises:
      ValueError: an array has another number of axes than it has names.
    """

    def of_array(path, array):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        names = parameter_axes.get(name, (None,) * len(array.shape))
        if len(names) != len(array.shape):
            raise ValueError(f"{name} has the shape {array.shape} and the names {names}")
        return PartitionSpec(*names)

    return jax.tree.map_with_path(of_array, shapes)


def on_mesh(partition: Any, mesh_axes: Mapping[str, Any]) -> Any:
    """The layout of parameters whose axes have names, a tree of `PartitionSpec`s.

    Args:
      partition: what `named` gives, such as `Head.partition(lexicon)`.
      mesh_axes: {"words", "features" or "hidden": the axis of the mesh that cuts it, several as a
        tuple, or None}; what is not named is not cut.

    Raises:
      ValueError: for another name.

    Example:
      >>> from jax.sharding import PartitionSpec
      >>> on_mesh({"bias": PartitionSpec("words")}, {"words": "model"})
      {'bias': PartitionSpec('model',)}
    """
    for name in mesh_axes:
        if name not in NAMES:
            raise ValueError(f"mesh_axes has {name!r}: axes are called {', '.join(NAMES)}")

    def of_array(names):
        return PartitionSpec(*(mesh_axes.get(name) for name in names))

    return jax.tree.map(of_array, partition, is_leaf=lambda x: isinstance(x, PartitionSpec))
