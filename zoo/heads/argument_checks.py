"""Checks of a head's arguments except the hidden states: arrays, lexicons, keys and contexts.

A head declares the shapes of its arrays as `zoo.losses.value_checks.check_shapes` reads them: a
letter stands for a size, and for the same size in all arrays. Arrays of another head or lexicon,
and trees that were transposed or cast, then raise an error that names the method and the array.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays import row_lookup
from zoo.arrays.random_keys import Keys
from zoo.lexicon import Lexicon
from zoo.losses.value_checks import check_shapes

INTEGERS = "int "


class Shapes(NamedTuple):
    """Shapes of a head's arrays, a letter for each size: "V D"; "int V" for whole numbers."""

    # the shape of each parameter by its path, such as "a/0"; None for a tree that is not checked
    params: Mapping[str, str | None]
    tables: Mapping[str, str | None]
    loss_tables: Mapping[str, str | None] = MappingProxyType({})


def check_arrays(name: str, shapes: Shapes, given: Mapping[str, Any]):
    """Checks the types and shapes of a head's parameters and tables."""
    sources = {
        "params": "the result of this head's `init`",
        "tables": "the result of this head's `tables`",
    }
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
            f"{name}: params have {surplus[0]!r}, which this head does not have: give the result "
            "of this head's `init`"
        )
    _check_group(name, "params", params, shapes.params)
    _check_group(name, "tables", tables, {**shapes.tables, **shapes.loss_tables})


def size_of(letter: str, shapes: Shapes, params: Any, tables: Any) -> int | None:
    """Returns the size that a letter stands for where it is an array's first, None if none has."""
    groups = (params, shapes.params), (tables, {**shapes.tables, **shapes.loss_tables})
    for group, declared in groups:
        for path, letters in declared.items():
            if letters and letters.removeprefix(INTEGERS).split()[0] == letter:
                shape = getattr(_leaf(group, path), "shape", ())
                if shape:
                    return shape[0]
    return None


def _check_group(name, argument, group, shapes):
    """Raises TypeError if an array has another type, ValueError if shapes do not agree."""
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
    """Whether a tree of dicts has an entry at a path."""
    for step in path.split("/"):
        if not isinstance(tree, Mapping) or step not in tree:
            return False
        tree = tree[step]
    return True


def _leaf(tree, path):
    """Returns a tree's entry at a path such as "a/0/b", or None if there is none."""
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
    """Raises ValueError unless prepared arrays have the shapes that `prepared` returns."""
    found = jax.tree.map(np.shape, prepared)
    if found != wanted:
        raise ValueError(
            f"{name}: prepared has the shapes {found}, and these states and tables need {wanted}: "
            "give the result of this head's `prepared` for them"
        )


def check_lexicon(name: str, lexicon: Any):
    """Raises TypeError unless `lexicon` is a Lexicon."""
    if not isinstance(lexicon, Lexicon):
        raise TypeError(
            f"{name}: lexicon is a {type(lexicon).__name__}: give a zoo.lexicon.Lexicon, which "
            "Lexicon(words, counts), from_counts, from_tokenizer and from_dataset make"
        )


def check_hidden_size(name: str, hidden_size: Any):
    """Raises TypeError unless `hidden_size` is a whole number, ValueError if it is below 1."""
    if isinstance(hidden_size, bool) or not isinstance(hidden_size, int | np.integer):
        raise TypeError(f"{name}: hidden_size is {hidden_size!r}: give a whole number")
    if hidden_size < 1:
        raise ValueError(f"{name}: hidden_size is {hidden_size}: give at least 1")


def check_key(name: str, key: Any, *, of_batch: bool = False):
    """Raises TypeError unless `key` is one key of `jax.random`."""
    if of_batch and isinstance(key, Keys):
        return
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", ())
    if dtype is None:
        raise TypeError(f"{name}: key is {key!r}: give a key, such as jax.random.key(0)")
    if not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        try:
            shape = jax.random.wrap_key_data(key).shape
        except TypeError:
            raise TypeError(
                f"{name}: key is {dtype} of the shape {shape}: give a key, such as "
                "jax.random.key(0)"
            ) from None
    if shape:
        raise TypeError(f"{name}: key has {shape} keys: give one, or map over them by jax.vmap")


def check_context(name: str, context: Any, shape: tuple[int, ...]):
    """Raises ValueError unless every array of a context has a row for each token."""
    for leaf in jax.tree.leaves(context):
        if np.shape(leaf)[: len(shape)] != shape:
            raise ValueError(
                f"{name}: context has the shape {np.shape(leaf)}: give the output of the "
                f"background's `apply` for tokens of the shape {shape}"
            )


def as_array(name: str, argument: str, value: Any) -> jax.Array:
    """Returns an argument as an array."""
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        found = f"of the type {value.dtype}" if hasattr(value, "dtype") else repr(value)[:60]
        raise TypeError(f"{name}: {argument} is {found}: give an array of numbers") from None
