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


def _leaf(tree, path, default=None):
    """Returns a tree's entry at a path such as "a/0/b", or the default if there is none."""
    for step in path.split("/"):
        try:
            tree = tree[int(step) if isinstance(tree, tuple | list) else step]
        except (KeyError, IndexError, TypeError, ValueError):
            return default
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


def _check_makers(name, lexicon, hidden_size=1, key=None):
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
        value_checks.check_key(f"{name}: key", key)


def _as_array(name, argument, value) -> jax.Array:
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        found = f"of the type {value.dtype}" if hasattr(value, "dtype") else repr(value)[:60]
        raise TypeError(f"{name}: {argument} is {found}: give an array of numbers") from None


# Ends of the names of methods that read what the loss alone needs.
LOSSES = (".loss", ".weighted_loss", ".weighted_loss_and_penalty")


def checked(method: Callable[P, R]) -> Callable[P, R]:
    """Makes a public method of heads run with checked arguments of regular shapes and types."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def with_checks(*given: P.args, **options: P.kwargs) -> R:
        try:
            bound = signature.bind(*given, **options)
        except TypeError:
            return method(*given, **options)  # raises Python's own error, which names the method
        bound.apply_defaults()
        arguments: dict[str, Any] = {**bound.arguments}
        head = arguments.pop("self")
        name = f"{type(head).__name__}.{method.__name__}"
        if "lexicon" in arguments:
            _check_makers(name, **arguments)
        elif "hidden" in arguments:
            return _checked(head, name, functools.partial(method, head), arguments)
        else:
            check_params(head, name, arguments)
        return method(*given, **options)

    return with_checks


def _checked(head, name, function, arguments):
    """Calls a method with checked arguments: see the module's docstring."""
    if not head.prepares and jax.tree.leaves(arguments.get("prepared")):
        raise TypeError(f"{name} does not take prepared arrays: leave prepared= out")
    _check_given(name, head, arguments)
    for argument in STATES:
        if argument in arguments:
            arguments[argument] = _as_array(name, argument, arguments[argument])
    _check_arrays(name, head, arguments)
    if (mesh := sharded_functions.explicit_mesh(arguments)) is not None:
        return _over_explicit(head, name, function, arguments, mesh)
    # Tables and keys are the same on all devices, and so are the draws from them.
    shared = ("tables", "key")
    differing = {name: value for name, value in arguments.items() if name not in shared}
    arguments |= sharded_functions.vary_together(differing)
    _check_sizes(name, head.sizes(arguments["params"], arguments["tables"]))
    arguments |= _regular(name, arguments)
    _check_hidden_size(name, head.parameter_axes, arguments)
    if "context" in arguments:
        _check_context(name, head, arguments)
    if 0 in arguments["hidden"].shape[:-1]:
        return _of_no_tokens(function, arguments)
    if "targets" in arguments:
        return _of_words(name, head, function, arguments)
    return function(**arguments)


def check_params(head: "Head", name: str, arguments: dict[str, Any]):
    _check_given(name, head, arguments)
    if head.array_shapes is not None:
        _check_arrays(name, head, arguments)
        _check_sizes(name, head.sizes(arguments["params"], arguments["tables"]))


# The arguments that may not be None, and what errors tell to give instead.
GIVEN = {
    "params": "the result of this head's `init`",
    "tables": "the result of this head's `tables` for the lexicon, which may be {}",
    "hidden": "floating-point numbers of the shape [..., D]",
    "targets": "word ids, whole numbers",
    "token_weights": "numbers that broadcast to the targets",
}
STATES = ("hidden", "targets", "token_weights")


def _check_given(name, head, arguments):
    for argument, wanted in GIVEN.items():
        value = arguments.get(argument, 0)
        if value is None or (argument in STATES and _is_text(value)):
            shown = "None" if value is None else "text"
            raise TypeError(f"{name}: {argument} is {shown}: give {wanted}")
    key = arguments.get("key")
    of_batch = isinstance(key, Keys) or key is None or not head.loss_draws
    if name.endswith(".sample") or not of_batch:
        value_checks.check_key(f"{name}: key", key)


def _check_arrays(name, head, arguments):
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
    _check_group(name, "params", params, shapes.params)
    _check_group(name, "tables", tables, {**shapes.tables, **shapes.loss_tables})
    _check_there(name, head, shapes, arguments)
    prepared = arguments.get("prepared")
    if jax.tree.leaves(prepared):
        wanted = head.prepared_shapes(arguments["tables"], arguments["hidden"].shape[-1])
        found = jax.tree.map(np.shape, prepared)
        if found != wanted:
            raise ValueError(
                f"{name}: prepared has the shapes {found}, and these states and tables need "
                f"{wanted}: give the result of this head's `prepared` for them"
            )


def _check_there(name, head, shapes, arguments):
    params = dict.fromkeys(path.partition("/")[0] for path in shapes.params)
    of_loss = shapes.loss_tables if name.endswith(LOSSES) else {}
    tables = [*shapes.tables, *of_loss]
    for group, paths in {"params": params, "tables": tables}.items():
        for path in paths:
            if _leaf(arguments[group], path, _MISSING) is not _MISSING:
                continue
            wanted = (
                "give the results of this head's `init` and `tables` for the lexicon; a sampled "
                "loss needs `tables`, not `evaluation_tables`"
            )
            if (group, path) == ("params", "weights") and head.tied:
                wanted = "give a tied head the embedding's table as these"
            raise TypeError(f"{name}: {group} have no {path!r}: {wanted}")


def _is_text(value):
    of_text = isinstance(value, list | tuple) and any(isinstance(item, str) for item in value)
    return of_text or isinstance(value, str)


def _check_sizes(name, sizes):
    for what, of_params, of_tables in sizes:
        if of_params != of_tables:
            raise ValueError(
                f"{name}: params are of {of_params:,} {what} and tables of {of_tables:,}: give "
                "params and tables of one lexicon"
            )


def _check_hidden_size(name, parameter_axes, arguments):
    size, params = arguments["hidden"].shape[-1], arguments["params"]
    for of_parameter, names in parameter_axes.items():
        array = params.get(of_parameter) if isinstance(params, Mapping) else None
        shape = getattr(array, "shape", ())
        if HIDDEN not in names or len(shape) != len(names):
            continue
        wanted = shape[names.index(HIDDEN)]
        if wanted != size:
            raise ValueError(
                f"{name}: hidden states have {size} numbers, and params[{of_parameter!r}] of the "
                f"shape {shape} is for {wanted}"
            )


def _check_context(name, head, arguments):
    """Raises TypeError unless there is a context just where the head has a background, ValueError
    unless it has one of every token."""
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


def _regular(name, arguments):
    """Returns hidden states, targets and token weights in regular shapes and types."""
    hidden = arguments["hidden"]
    if not hidden.ndim or not jnp.issubdtype(hidden.dtype, jnp.floating):
        raise ValueError(
            f"{name}: hidden states are floating-point numbers of the shape [..., D], and these "
            f"are {hidden.dtype} of the shape {hidden.shape}"
        )
    regular, shape = {"hidden": hidden}, hidden.shape[:-1]
    if "targets" in arguments:
        regular["targets"] = targets = arguments["targets"]
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
        weights = _token_weights(name, arguments["token_weights"], shape, hidden.dtype)
        regular["hidden"], regular["token_weights"] = zero_padding_states(hidden, weights)
    return regular


def _token_weights(name, weights, wanted, dtype):
    try:
        broadcast = jnp.broadcast_shapes(weights.shape, wanted) == wanted
    except ValueError:
        broadcast = False
    if not broadcast:
        raise ValueError(
            f"{name}: token_weights of the shape {weights.shape} do not broadcast to the shape "
            f"{wanted} of the targets"
        )
    if not jnp.issubdtype(weights.dtype, jnp.floating):
        if jnp.issubdtype(weights.dtype, jnp.complexfloating):
            raise ValueError(f"{name}: token_weights are {weights.dtype}: give real numbers")
        weights = weights.astype(jnp.promote_types(dtype, jnp.float32))
    return jnp.broadcast_to(weights, wanted)


def _of_words(name, head, function, arguments):
    """Calls a function with targets that are words: see the module's docstring."""
    targets, weights = arguments["targets"], arguments.get("token_weights")
    unknown = targets < 0
    vocabulary = _vocabulary_size(head, arguments)
    if vocabulary is not None:
        value_checks.check_ids(vocabulary, weights, **{f"{name}: targets": targets})
        if vocabulary <= jnp.iinfo(targets.dtype).max:
            unknown |= targets >= vocabulary
    arguments["targets"] = jnp.where(unknown, 0, targets)
    if weights is None:
        results = function(**arguments)
        return _without_log_prob(unknown, results)
    arguments["token_weights"] = jnp.where(unknown, 0, weights)
    results = function(**arguments)
    # A sum, as the loss: devices that share the tokens add both at once.
    undefined = jnp.where(unknown & (weights != 0), jnp.nan, 0).sum()
    if isinstance(results, tuple):
        loss, penalty = results
        return loss + undefined.astype(loss.dtype), penalty
    return results + undefined.astype(results.dtype)


def _without_log_prob(unknown, results):
    """Returns results with NaN, and False, for targets that are no words."""
    if not isinstance(results, tuple):
        return jnp.where(unknown, jnp.nan, results)
    # The others, log Z and entropy, do not depend on the target.
    log_prob, *others = results
    others = [other & ~unknown if other.dtype == bool else other for other in others]
    given = jnp.where(unknown, jnp.nan, log_prob), *others
    return type(results)(*given) if hasattr(results, "_fields") else given


def _vocabulary_size(head, arguments):
    """Returns V, which the head declares or the shape of its `_log_probs` tells."""
    params, tables, hidden = (arguments[name] for name in ("params", "tables", "hidden"))
    size = head.vocabulary_size(params, tables)
    if size is not None or not head.has_log_probs:
        return size
    given = params, tables, hidden, arguments.get("context"), None
    return jax.eval_shape(lambda: head._log_probs(*given)).shape[-1]


def _of_no_tokens(function, arguments):
    """Returns the results of a function for no tokens, of shapes traced for one token: empty
    arrays, and 0 for sums."""
    shape = arguments["hidden"].shape[:-1]

    def some(array):
        filled = (*(max(1, count) for count in shape), *array.shape[len(shape) :])
        return jnp.zeros(filled, array.dtype)

    names = ("hidden", "targets", "token_weights", "context")
    filled = {name: jax.tree.map(some, arguments[name]) for name in names if name in arguments}
    arguments |= filled
    if "targets" in arguments:
        arguments["targets"] = arguments["targets"].astype(jnp.int32)
    if isinstance(arguments.get("key"), Keys):
        arguments["key"] = arguments["key"].batch
    results = jax.eval_shape(lambda: function(**arguments))
    shape = () if "token_weights" in arguments else shape
    return jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape[len(shape) :]), x.dtype), results)


# ---- methods on arrays that lie over the explicit axes of a mesh, see `jax.make_mesh`
# If tokens are sharded, every device computes the results of its own tokens alone, and sums over
# tokens are added over devices once, at the end. Methods that draw random numbers compute all
# tokens together, so that every layout draws the same numbers. Parameters may be sharded by their
# words, along other axes: the compiler then inserts the communication that sums over words need.

OF_TOKENS = ("targets", "token_weights", "context")


def _over_explicit(head, name, function, given, mesh):
    """Calls a method whose results are laid out like the hidden states along tokens, and like the
    words of the parameters along words."""
    of_tokens = sharded_functions.spec_of(given["hidden"])[:-1]
    axes = {name for names in of_tokens for name in names}
    words = _axes_of_words(given["params"], axes) if name.endswith(".log_probs") else ()
    draws = given.get("key") is not None and (name.endswith(".sample") or head.loss_draws)

    def spec(result):
        if result.ndim < len(of_tokens):
            return PartitionSpec()
        devices = math.prod(mesh.shape[name] for name in words)
        last = [words if result.shape[-1] % devices == 0 else ()]
        return PartitionSpec(*of_tokens, *last * (result.ndim - len(of_tokens)))

    def within(**present):
        return _checked(head, name, function, {**dict.fromkeys(given), **present})

    def whole(present):
        if not axes or draws:
            return within(**present)
        return _on_each_device(within, of_tokens, axes, present)

    present = {name: value for name, value in given.items() if value is not None}
    return sharded_functions.with_automatic_axes(whole, present, mesh, spec)


def _axes_of_words(params, without) -> tuple[str, ...]:
    """Returns the mesh's axes over which rows of the parameters lie, except axes in `without`."""
    row_axes = [
        sharded_functions.spec_of(x)[:1]
        for x in jax.tree.leaves(params)
        if isinstance(x, jax.Array)
    ]
    return next(
        (names for of_rows in row_axes for names in of_rows if names and not without & {*names}), ()
    )


def _on_each_device(function, of_tokens, axes, given):
    """Computes function(**given) on each device's own tokens, which lie over `axes`."""
    shape = given["hidden"].shape[:-1]
    rows, whole = PartitionSpec(*of_tokens), PartitionSpec()

    def spec(name, leaf):
        its = jnp.shape(leaf)[: len(shape)] == shape
        return rows if name == "hidden" or (name in OF_TOKENS and its) else whole

    if "token_weights" in given:
        given = {**given, "token_weights": jnp.broadcast_to(given["token_weights"], shape)}
    others = {name: value for name, value in given.items() if isinstance(value, int | float)}
    arrays = {name: value for name, value in given.items() if name not in others}
    summed = "token_weights" in given

    def of_device(arrays):
        results = function(**others, **arrays)
        return jax.tree.map(lambda x: jax.lax.psum(x, tuple(axes)), results) if summed else results

    return jax.shard_map(
        of_device,
        in_specs=(
            {n: jax.tree.map(lambda x, n=n: spec(n, x), value) for n, value in arrays.items()},
        ),
        out_specs=whole if summed else rows,
        axis_names=axes,
    )(arrays)
