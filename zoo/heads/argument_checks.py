"""What a head is given besides states: its arrays, lexicons, keys; a wrong one is an error by name.

A head says of its arrays what `zoo.losses.shape_checks.check_shapes` reads: letters for sizes, the
same letter for the same size in all of them. Arrays of another head, of another lexicon or of a
tree that was transposed or cast then give no number, but an error where they come in.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays import row_lookup
from zoo.arrays.keys import Keys
from zoo.lexicon import Lexicon
from zoo.losses.shape_checks import check_shapes

INTEGERS = "int "


class Shapes(NamedTuple):
    """The shapes of a head's arrays, letters that stand for sizes: "V D"; "int V" of whole numbers.

    Attributes:
      params: of each parameter, "a/0" for what is within a; None of a tree that is not looked into.
      tables: of the tables that every method reads; others may be there.
      loss_tables: of those that the loss alone reads.
    """

    params: Mapping[str, str | None]
    tables: Mapping[str, str | None]
    loss_tables: Mapping[str, str | None] = MappingProxyType({})


def check_arrays(name: str, shapes: Shapes, given: Mapping[str, Any]):
    """Looks at the parameters and tables of a head.

    Args:
      name: of the method that is given them.
      shapes: of the head.
      given: "params", and perhaps "tables" and "prepared", arrays that stand for parameters.

    Raises:
      TypeError: one is no dict, parameters are another head's, or arrays of another type.
      ValueError: their shapes do not agree.
    """
    sources = {"params": "what `init` of this head gave", "tables": "what `tables` of it gave"}
    for argument, source in sources.items():
        value = given.get(argument, {})
        if not isinstance(value, Mapping):
            raise TypeError(
                f"{name}: {argument} is a {type(value).__name__}: give {source}, a dict"
            )
    params, tables = given["params"], given.get("tables", {})
    surplus = sorted({*params} - {name.partition("/")[0] for name in shapes.params})
    if surplus:
        raise TypeError(
            f"{name}: params have {surplus[0]!r}, which this head does not have: give what `init` "
            "of this head gave"
        )
    _check_group(name, "params", params, shapes.params)
    _check_group(name, "tables", tables, {**shapes.tables, **shapes.loss_tables})


def _check_group(name, argument, group, shapes):
    """TypeError or ValueError for arrays of other types, or of shapes that do not agree."""
    arrays = {}
    for path, letters in shapes.items():
        value = _leaf(group, path)
        if letters is None or value is None or isinstance(value, row_lookup.Computed):
            continue
        array, whole = f"{argument}[{path!r}]", letters.startswith(INTEGERS)
        _check_type(name, array, value, whole)
        arrays[array] = value, letters.removeprefix(INTEGERS)
    try:
        check_shapes(**arrays)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def has(tree: Any, path: str) -> bool:
    """Whether a tree of dicts has something at a path, "a/b"."""
    for step in path.split("/"):
        if not isinstance(tree, Mapping) or step not in tree:
            return False
        tree = tree[step]
    return True


def _leaf(tree, path):
    """What is at a path, "a/0/b", of a tree; None where it has none."""
    for step in path.split("/"):
        try:
            tree = tree[int(step) if isinstance(tree, tuple | list) else step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return tree


def _check_type(name, array, value, whole):
    dtype = getattr(value, "dtype", None)
    kind = jnp.integer if whole else jnp.floating
    if dtype is None and isinstance(value, float | int):
        dtype = jnp.result_type(value)
    if dtype is None or not jnp.issubdtype(dtype, kind):
        found = f"a {type(value).__name__}" if dtype is None else f"of the type {dtype}"
        wanted = "whole numbers" if whole else "floating-point numbers"
        raise TypeError(f"{name}: {array} is {found}: give {wanted}")


def check_prepared(name: str, prepared: Any, wanted: Any):
    """ValueError unless prepared arrays have the shapes of those that the head would prepare."""
    found = jax.tree.map(np.shape, prepared)
    if found != wanted:
        raise ValueError(
            f"{name}: prepared has the shapes {found}, and these states and tables need {wanted}: "
            "give what `prepared` of this head gave for them"
        )


def check_lexicon(name: str, lexicon: Any):
    """TypeError for what is no lexicon."""
    if not isinstance(lexicon, Lexicon):
        raise TypeError(
            f"{name}: lexicon is a {type(lexicon).__name__}: give a zoo.lexicon.Lexicon, which "
            "Lexicon(words, counts), from_counts, from_tokenizer and from_dataset make"
        )


def check_hidden_size(name: str, hidden_size: Any):
    """TypeError or ValueError for what is no number of numbers."""
    if isinstance(hidden_size, bool) or not isinstance(hidden_size, int | np.integer):
        raise TypeError(f"{name}: hidden_size is {hidden_size!r}: give a whole number")
    if hidden_size < 1:
        raise ValueError(f"{name}: hidden_size is {hidden_size}: give at least 1")


def check_key(name: str, key: Any, *, of_batch: bool = False):
    """TypeError for what is no key of `jax.random`, nor, of a batch, `zoo.arrays.keys.Keys`."""
    if of_batch and isinstance(key, Keys):
        return
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", ())
    if dtype is None:
        raise TypeError(f"{name}: key is {key!r}: give a key, as jax.random.key(0) is")
    if not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        try:
            shape = jax.random.wrap_key_data(key).shape
        except TypeError:
            raise TypeError(
                f"{name}: key is {dtype} of the shape {shape}: give a key, as jax.random.key(0) is"
            ) from None
    if shape:
        raise TypeError(f"{name}: key has {shape} keys: give one, or map over them by jax.vmap")


def check_context(name: str, context: Any, shape: tuple[int, ...]):
    """ValueError unless what a background knows is known of every token."""
    for leaf in jax.tree.leaves(context):
        if np.shape(leaf)[: len(shape)] != shape:
            raise ValueError(
                f"{name}: context has the shape {np.shape(leaf)}: give what the background's "
                f"`apply` gives for tokens of the shape {shape}"
            )


def as_array(name: str, argument: str, value: Any) -> jax.Array:
    """The argument as an array; TypeError for what is none."""
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        found = f"of the type {value.dtype}" if hasattr(value, "dtype") else repr(value)[:60]
        raise TypeError(f"{name}: {argument} is {found}: give an array of numbers") from None
