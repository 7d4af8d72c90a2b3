"""Checks of the arguments of heads, and their conversion to regular shapes and types.

Heads flatten tokens into rows: targets or weights of another shape than the hidden states' would
silently give wrong numbers. The public methods of `zoo.heads.Head` run within `checked`, so that a
head's own methods (`_loss` and so on) get the arguments that the class describes, and

- a token of weight 0 whose hidden state is not finite has a hidden state of zeros, and the gradient
  of its weight is 0;
- a target that is not a word is given as the word 0 with a weight of 0, so that it has no gradient;
  its loss, log-probability or weighted sum becomes NaN;
- there is at least one token: without tokens the head's own method is not run.

Errors that the head itself raises, KeyError included, are passed on unchanged. Checks of shapes and
types cost nothing in compiled code: they run while the function is traced.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from zoo.base.arrays import row_lookup, sharded_functions
from zoo.base.arrays.parameter_sharding import HIDDEN
from zoo.base.arrays.random_keys import Keys
from zoo.lexicon import Lexicon
from zoo.losses import value_checks
from zoo.losses.token_blocks import zero_padding_states
from zoo.losses.value_checks import check_shapes

if TYPE_CHECKING:
    from zoo.heads.head import Head

P = ParamSpec("P")
R = TypeVar("R")

# ---- checks of a head's arguments except the hidden states: arrays, lexicons, keys and contexts
# A head declares the shapes of its arrays as `zoo.losses.value_checks.check_shapes` reads them: a
# letter stands for a size, and for the same size in all arrays. Arrays of another head or lexicon,
# and trees that were transposed or cast, then raise an error that names the method and the array.

INTEGERS = "int "
_MISSING = object()


class Shapes(NamedTuple):
    """Shapes of a head's arrays, a letter for each size: "V D"; "int V" for whole numbers."""

    # the shape of each parameter by its path, such as "a/0"; None for a tree that is not checked
    params: Mapping[str, str | None]
    tables: Mapping[str, str | None]
    loss_tables: Mapping[str, str | None] = MappingProxyType({})


def _check_tree(name, argument, tree, shapes):
    arrays = {}
    for path, letters in shapes.items():
        array = leaf_at(tree, path)
        if letters is None or array is None or isinstance(array, row_lookup.Computed):
            continue
        label, is_integer = f"{argument}[{path!r}]", letters.startswith(INTEGERS)
        dtype = getattr(array, "dtype", None)
        if dtype is None and isinstance(array, float | int):
            dtype = jnp.result_type(array)
        if dtype is None or not jnp.issubdtype(dtype, jnp.integer if is_integer else jnp.floating):
            description = f"a {type(array).__name__}" if dtype is None else f"of the type {dtype}"
            remedy = "whole numbers" if is_integer else "floating-point numbers"
            raise TypeError(f"{name}: {label} is {description}: give {remedy}")
        arrays[label] = array, letters.removeprefix(INTEGERS)
    try:
        check_shapes(**arrays)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def leaf_at(tree, path, default=None):
    """Returns a tree's entry at a path such as "a/0/b", or the default if there is none."""
    for step in path.split("/"):
        try:
            tree = tree[int(step) if isinstance(tree, tuple | list) else step]
        except (KeyError, IndexError, TypeError, ValueError):
            return default
    return tree


# Suffixes of the methods that read `Shapes.loss_tables`.
LOSS_METHODS = (
    ".loss",
    ".weighted_loss",
    ".weighted_loss_and_report",
    ".weighted_loss_and_penalty",
)


def checked(method: Callable[P, R]) -> Callable[P, R]:
    """Makes a public method of heads run with checked arguments of regular shapes and types."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def with_checks(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return method(*args, **kwargs)  # raises Python's own error, which names the method
        bound.apply_defaults()
        arguments: dict[str, Any] = {**bound.arguments}
        head = arguments.pop("self")
        name = f"{type(head).__name__}.{method.__name__}"
        if "hidden" in arguments:
            return _call_checked(head, name, functools.partial(method, head), arguments)
        if "lexicon" not in arguments:
            _check_required(name, head, arguments)
            _check_arrays(name, head, arguments)
            return method(*args, **kwargs)
        lexicon, hidden_size = arguments["lexicon"], arguments.get("hidden_size", 1)
        if not isinstance(lexicon, Lexicon):
            raise TypeError(
                f"{name}: lexicon is a {type(lexicon).__name__}: give a zoo.lexicon.Lexicon, which "
                "Lexicon(words, counts), from_counts, from_tokenizer and from_dataset make"
            )
        if isinstance(hidden_size, bool) or not isinstance(hidden_size, int | np.integer):
            raise TypeError(f"{name}: hidden_size is {hidden_size!r}: give a whole number")
        if hidden_size < 1:
            raise ValueError(f"{name}: hidden_size is {hidden_size}: give at least 1")
        if name.endswith(".init"):
            value_checks.check_key(f"{name}: key", arguments["key"])
        return method(*args, **kwargs)

    return with_checks


def _call_checked(head, name, function, arguments):
    """Calls a method with checked arguments of regular shapes; see the module's docstring."""
    if not head.prepares and jax.tree.leaves(arguments.get("prepared")):
        raise TypeError(f"{name} does not take prepared arrays: leave prepared= out")
    _check_required(name, head, arguments)
    for argument in filter(arguments.__contains__, ARRAY_ARGUMENTS):
        value = arguments[argument]
        try:
            arguments[argument] = jnp.asarray(value)
        except (TypeError, ValueError):
            kind = f"of the type {value.dtype}" if hasattr(value, "dtype") else repr(value)[:60]
            raise TypeError(f"{name}: {argument} is {kind}: give an array of numbers") from None
    _check_arrays(name, head, arguments)
    mesh = sharded_functions.explicit_mesh(arguments)
    if mesh is not None:
        return _call_on_explicit_mesh(head, name, function, arguments, mesh)
    # Tables and keys are the same on all devices, and so are the draws from them.
    replicated = ("tables", "key")
    varying = {name: value for name, value in arguments.items() if name not in replicated}
    arguments |= sharded_functions.vary_together(varying)
    arguments |= _regularise(name, head, arguments)
    if "context" in arguments:
        _check_context(name, head, arguments)
    if 0 in arguments["hidden"].shape[:-1]:
        return _call_without_tokens(function, arguments)
    if "targets" not in arguments:
        return function(**arguments)
    is_invalid = _replace_invalid_targets(name, head, arguments)
    results = function(**arguments)
    is_tuple = isinstance(results, tuple)
    # The others, log Z and entropy, or the penalties, do not depend on the target.
    first, *others = results if is_tuple else (results,)
    if is_invalid.dtype == bool:
        first = jnp.where(is_invalid, jnp.nan, first)
        others = [x & ~is_invalid if x.dtype == bool else x for x in others]
    else:
        first += is_invalid.astype(first.dtype)
    if not is_tuple:
        return first
    return type(results)(first, *others) if hasattr(results, "_fields") else (first, *others)


def check_params(head: "Head", name: str, arguments: dict[str, Any]):
    _check_required(name, head, arguments)
    _check_arrays(name, head, arguments)


# What to give for the arguments that may not be None.
REMEDIES = {
    "params": "the result of this head's `init`",
    "tables": "the result of this head's `tables` for the lexicon, which may be {}",
    "hidden": "floating-point numbers of the shape [..., D]",
    "targets": "word ids, whole numbers",
    "token_weights": "numbers that broadcast to the targets",
    "words": "word ids, whole numbers of the shape [..., K]",
}
ARRAY_ARGUMENTS = ("hidden", "targets", "token_weights", "words")


def _check_required(name, head, arguments):
    for argument, remedy in REMEDIES.items():
        value = arguments.get(argument, 0)
        elements = value if isinstance(value, list | tuple) else [value]
        is_text = argument in ARRAY_ARGUMENTS and any(isinstance(x, str) for x in elements)
        if value is None or is_text:
            description = "None" if value is None else "text"
            raise TypeError(f"{name}: {argument} is {description}: give {remedy}")
    key = arguments.get("key")
    needs_no_check = isinstance(key, Keys) or key is None or not head.loss_draws
    if name.endswith(".sample") or not needs_no_check:
        value_checks.check_key(f"{name}: key", key)


def _check_arrays(name, head, arguments):
    """Raises TypeError or ValueError unless all arrays have the shapes that the head declares."""
    shapes = head.array_shapes
    if shapes is None:
        return
    params, tables = arguments["params"], arguments["tables"]
    for argument, value in {"params": params, "tables": tables}.items():
        if not isinstance(value, Mapping):
            raise TypeError(
                f"{name}: {argument} is a {type(value).__name__}: give the result of this head's "
                f"`{'init' if argument == 'params' else argument}`, a dict"
            )
    surplus = sorted({*params} - {name.partition("/")[0] for name in shapes.params})
    if surplus:
        raise TypeError(
            f"{name}: params have {surplus[0]!r}, which this head does not have: give the result "
            "of this head's `init`"
        )
    _check_tree(name, "params", params, shapes.params)
    _check_tree(name, "tables", tables, {**shapes.tables, **shapes.loss_tables})
    required_tables = [*shapes.tables, *(shapes.loss_tables if name.endswith(LOSS_METHODS) else {})]
    required_params = dict.fromkeys(path.partition("/")[0] for path in shapes.params)
    for argument, paths in {"params": required_params, "tables": required_tables}.items():
        for path in paths:
            if leaf_at(arguments[argument], path, _MISSING) is not _MISSING:
                continue
            remedy = (
                "give the results of this head's `init` and `tables` for the lexicon; a sampled "
                "loss needs `tables`, not `evaluation_tables`"
            )
            if (argument, path) == ("params", "weights") and head.tied:
                remedy = "give a tied head the embedding's table as these"
            raise TypeError(f"{name}: {argument} have no {path!r}: {remedy}")
    for unit, params_size, tables_size in head.sizes(params, tables):
        if params_size != tables_size:
            raise ValueError(
                f"{name}: params are of {params_size:,} {unit} and tables of {tables_size:,}: give "
                "params and tables of one lexicon"
            )
    prepared = arguments.get("prepared")
    if jax.tree.leaves(prepared):
        expected_shapes = head.prepared_shapes(arguments["tables"], arguments["hidden"].shape[-1])
        prepared_shapes = jax.tree.map(np.shape, prepared)
        if prepared_shapes != expected_shapes:
            raise ValueError(
                f"{name}: prepared has the shapes {prepared_shapes}, and these states and tables "
                f"need {expected_shapes}: give the result of this head's `prepared` for them"
            )


def _check_context(name, head, arguments):
    """Raises TypeError unless a context is given if and only if the head has a background, and
    ValueError unless it has an entry for every token."""
    context = arguments["context"]
    if context is None:
        if head.background is not None:
            raise TypeError(
                f"{name}: the head's {type(head.background).__name__} needs the words before each "
                "position: give context=, the output of its `apply` for them"
            )
    elif head.background is not None:
        shape = arguments["hidden"].shape[:-1]
        for leaf in jax.tree.leaves(context):
            if np.shape(leaf)[: len(shape)] != shape:
                raise ValueError(
                    f"{name}: context has the shape {np.shape(leaf)}: give the output of the "
                    f"background's `apply` for tokens of the shape {shape}"
                )
    elif head.array_shapes is not None and jax.tree.leaves(context):
        raise TypeError(f"{name}: the head has no background: leave context out")


def _regularise(name, head, arguments):
    """Returns hidden states, targets and token weights in regular shapes and types."""
    hidden = arguments["hidden"]
    if not hidden.ndim or not jnp.issubdtype(hidden.dtype, jnp.floating):
        raise ValueError(
            f"{name}: hidden states are floating-point numbers of the shape [..., D], and these "
            f"are {hidden.dtype} of the shape {hidden.shape}"
        )
    arrays, shape = {"hidden": hidden}, hidden.shape[:-1]
    if "targets" in arguments:
        arrays["targets"] = targets = arguments["targets"]
        if targets.shape != shape:
            raise ValueError(
                f"{name}: hidden states of the shape {hidden.shape} need targets of the shape "
                f"{shape}, one for each state, and these have {targets.shape}"
            )
        # An empty array does not tell its type: jnp.asarray([]) is float32.
        if targets.size and not jnp.issubdtype(targets.dtype, jnp.integer):
            raise ValueError(
                f"{name}: targets are word ids, whole numbers, and these are {targets.dtype}"
            )
    if "token_weights" in arguments:
        weights = _broadcast_weights(name, arguments["token_weights"], shape, hidden.dtype)
        arrays["hidden"], arrays["token_weights"] = zero_padding_states(hidden, weights)
    for parameter, axis_names in head.parameter_axes.items():
        params = arguments["params"]
        array = params.get(parameter) if isinstance(params, Mapping) else None
        param_shape = getattr(array, "shape", ())
        if HIDDEN not in axis_names or len(param_shape) != len(axis_names):
            continue
        size = param_shape[axis_names.index(HIDDEN)]
        if hidden.shape[-1] != size:
            raise ValueError(
                f"{name}: hidden states have {hidden.shape[-1]} numbers, and params[{parameter!r}] "
                f"of the shape {param_shape} is for {size}"
            )
    return arrays


def _broadcast_weights(name, weights, shape, dtype):
    try:
        is_broadcastable = jnp.broadcast_shapes(weights.shape, shape) == shape
    except ValueError:
        is_broadcastable = False
    if not is_broadcastable:
        raise ValueError(
            f"{name}: token_weights of the shape {weights.shape} do not broadcast to the shape "
            f"{shape} of the targets"
        )
    if not jnp.issubdtype(weights.dtype, jnp.floating):
        if jnp.issubdtype(weights.dtype, jnp.complexfloating):
            raise ValueError(f"{name}: token_weights are {weights.dtype}: give real numbers")
        weights = weights.astype(jnp.promote_types(dtype, jnp.float32))
    return jnp.broadcast_to(weights, shape)


def _replace_invalid_targets(name, head, arguments):
    """Replaces invalid targets by word 0 of weight 0; returns where the results become NaN, or the
    NaN or 0 that is added to a sum over the tokens."""
    targets, weights = arguments["targets"], arguments.get("token_weights")
    is_invalid = targets < 0
    params, tables, context = arguments["params"], arguments["tables"], arguments.get("context")
    vocabulary = head.vocabulary_size(params, tables)
    if vocabulary is None and head.has_log_probs:
        operands = params, tables, arguments["hidden"], context, None
        vocabulary = jax.eval_shape(lambda: head._log_probs(*operands)).shape[-1]
    if vocabulary is not None:
        value_checks.check_ids(vocabulary, weights, **{f"{name}: targets": targets})
        if vocabulary <= jnp.iinfo(targets.dtype).max:
            is_invalid |= targets >= vocabulary
    arguments["targets"] = jnp.where(is_invalid, 0, targets)
    if weights is None:
        return is_invalid
    arguments["token_weights"] = jnp.where(is_invalid, 0, weights)
    # A sum, as the loss: devices that share the tokens add both at once.
    return jnp.where(is_invalid & (weights != 0), jnp.nan, 0).sum()


def _call_without_tokens(function, arguments):
    """Returns the results of a function without tokens: empty arrays, and 0 for sums. Their shapes
    are traced with one token."""
    shape = arguments["hidden"].shape[:-1]

    def zeros(array):
        filled = (*(max(1, count) for count in shape), *array.shape[len(shape) :])
        return jnp.zeros(filled, array.dtype)

    names = ("hidden", "targets", "token_weights", "context", "words")
    filled = {name: jax.tree.map(zeros, arguments[name]) for name in names if name in arguments}
    arguments |= filled
    for name in {"targets", "words"} & arguments.keys():
        arguments[name] = arguments[name].astype(jnp.int32)
    if isinstance(arguments.get("key"), Keys):
        arguments["key"] = arguments["key"].batch
    results = jax.eval_shape(lambda: function(**arguments))

    def empty(x):
        return jnp.zeros((*shape, *x.shape[len(shape) :]) if x.ndim else (), x.dtype)

    return jax.tree.map(empty, results)


# ---- methods on arrays that lie over the explicit axes of a mesh, see `jax.make_mesh`
# If tokens are sharded, every device computes the results of its own tokens alone, and sums over
# tokens are added over devices once, at the end. Methods that draw random numbers compute all
# tokens together, so that every layout draws the same numbers. Parameters may be sharded by their
# words, along other axes: the compiler then inserts the communication that sums over words need.

TOKEN_ARGUMENTS = ("targets", "token_weights", "context", "words", "temperature")


def _call_on_explicit_mesh(head, name, function, arguments, mesh):
    """Calls a method on arrays over explicit axes of a mesh. Its results are sharded along tokens
    like the hidden states, and along words like the parameters."""
    token_spec = sharded_functions.spec_of(arguments["hidden"])[:-1]
    token_axes = {name for names in token_spec for name in names}
    word_axes: tuple[str, ...] = ()
    if name.endswith(".log_probs"):  # the axes that shard the parameters' rows
        arrays = [x for x in jax.tree.leaves(arguments["params"]) if isinstance(x, jax.Array)]
        row_axes = [axes for array in arrays for axes in sharded_functions.spec_of(array)[:1]]
        word_axes = next((axes for axes in row_axes if axes and not token_axes & {*axes}), ())
    draws = arguments.get("key") is not None and (name.endswith(".sample") or head.loss_draws)

    def spec(result):
        if result.ndim < len(token_spec):
            return PartitionSpec()
        devices = math.prod(mesh.shape[name] for name in word_axes)
        word_spec = [word_axes if result.shape[-1] % devices == 0 else ()]
        return PartitionSpec(*token_spec, *word_spec * (result.ndim - len(token_spec)))

    def call_checked(**operands):
        return _call_checked(head, name, function, {**dict.fromkeys(arguments), **operands})

    def compute(operands):
        if not token_axes or draws:
            return call_checked(**operands)
        are_sums = (True, False) if name.endswith("_report") else ".weighted_" in name
        return _map_over_devices(call_checked, token_spec, token_axes, operands, are_sums)

    operands = {name: value for name, value in arguments.items() if value is not None}
    return sharded_functions.with_automatic_axes(compute, operands, mesh, spec)


def _map_over_devices(function, token_spec, axes, operands, are_sums):
    """Calls a function on each device with its own tokens, which are sharded over `axes`.

    are_sums: whether its results are sums over tokens, a prefix of their tree.
    """
    shape = operands["hidden"].shape[:-1]
    sharded, replicated = PartitionSpec(*token_spec), PartitionSpec()

    def spec(name, leaf):
        has_tokens = jnp.shape(leaf)[: len(shape)] == shape
        return (
            sharded if name == "hidden" or (name in TOKEN_ARGUMENTS and has_tokens) else replicated
        )

    if "token_weights" in operands:
        operands = {**operands, "token_weights": jnp.broadcast_to(operands["token_weights"], shape)}
    numbers = {name: value for name, value in operands.items() if isinstance(value, int | float)}
    arrays = {name: value for name, value in operands.items() if name not in numbers}

    def call_on_device(arrays):
        results = function(**numbers, **arrays)
        return jax.tree.map(lambda x: x if x.ndim else jax.lax.psum(x, tuple(axes)), results)

    return jax.shard_map(
        call_on_device,
        in_specs=(
            {n: jax.tree.map(lambda x, n=n: spec(n, x), value) for n, value in arrays.items()},
        ),
        out_specs=jax.tree.map(lambda is_sum: replicated if is_sum else sharded, are_sums),
        axis_names=axes,
    )(arrays)
