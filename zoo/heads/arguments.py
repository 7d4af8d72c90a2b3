"""The arguments of heads, checked and made regular before anything is computed.

Heads flatten tokens into rows: targets or weights of another shape than the states' would give
numbers, and wrong ones. The public methods of `zoo.heads.Head` call what a head writes through
`checked`, so that within a head

- hidden states are floating point, [..., D], and targets whole numbers, [...];
- token weights are floating point, [...]: others are broadcast by the rules of numpy, and booleans
  and whole numbers become floats of the type in which losses are summed;
- a token of weight 0 whose state holds what is no finite number has a state of zeros. If it has no
  state or no target (a negative id), no gradient of its weight comes from it either. Its target
  may stay: heads make some number of it, or NaN, and what has no weight is not summed;
- params and tables have the arrays that the head says it reads (`Head.array_shapes`); what a head
  raises itself, a KeyError too, is let through as it is;
- params and tables are of the same numbers of words and features, where these tell, and params are
  for hidden states of this size; context is there if the head has a background;
- prepared arrays are an error where a method does not take them; no such arrays are not handed on;
- there is at least one token: for none, results are empty and sums 0, and the head is not asked.

Looking costs nothing in compiled code, which knows shapes before it runs.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from zoo.arrays import layouts
from zoo.arrays.keys import Keys
from zoo.arrays.partition import HIDDEN
from zoo.heads import argument_checks, sharding
from zoo.losses.token_blocks import present_states, without_gradient

if TYPE_CHECKING:
    from zoo.heads.head import Head

# The first arguments of methods, in their order.
ARRAYS = ("params", "tables", "hidden", "targets", "token_weights")
# Ends of the names of methods that read what the loss alone needs.
LOSSES = (".loss", ".weighted_loss", ".weighted_loss_and_penalty")


def checked(head: "Head", method: str, function: Callable, arrays: tuple, **others: Any) -> Any:
    """Computes a public method of a head by what the head writes, of checked, regular arguments.

    The arguments behind the arrays are given by name.

    Args:
      head: the head.
      method: the public method, which errors name.
      function: what the head writes for it; it gets the arrays and the others by position.
      arrays: the values of the first of `ARRAYS`.
    """
    arguments = {**dict(zip(ARRAYS, arrays, strict=False)), **others}
    name = f"{type(head).__name__}.{method}"
    if not head.prepares and jax.tree.leaves(arguments.get("prepared")):
        raise TypeError(f"{name} is handed prepared arrays and does not take any")
    _check_given(name, head, arguments)
    for argument in STATES:
        if argument in arguments:
            arguments[argument] = argument_checks.as_array(name, argument, arguments[argument])
    _check_arrays(name, head, arguments)
    if (mesh := layouts.explicit_mesh(arguments)) is not None:
        return _on_explicit_axes(head, method, function, mesh, arguments)
    arguments |= layouts.alike(_arrays(arguments))
    if "tables" in arguments:
        _check_sizes(name, head.sizes(arguments["params"], arguments["tables"]))
    arguments |= _regular(name, arguments)
    _check_hidden_size(name, head.parameter_axes, arguments)
    if "context" in arguments:
        _check_context(name, head, arguments)
    if 0 in arguments["hidden"].shape[:-1]:
        return _of_no_tokens(function, arguments)
    return function(*arguments.values())


def check(head: "Head", method: str, **arguments: Any):
    """Checks parameters and tables where there are no hidden states.

    Further arguments are "params" and "tables".

    Args:
      head: the head.
      method: see `checked`.
    """
    name = f"{type(head).__name__}.{method}"
    _check_given(name, head, arguments)
    if _shapes_of(head) is not None:
        _check_arrays(name, head, arguments)
        _check_sizes(name, head.sizes(arguments["params"], arguments["tables"]))


def _on_explicit_axes(head, method, function, mesh, arguments):
    """`checked`, where arrays lie over the explicit axes of a mesh."""

    def within(**present):
        return checked(head, method, function, (), **{**dict.fromkeys(arguments), **present})

    draws = arguments.get("key") is not None and (method == "sample" or head.draws_noise)
    return sharding.over_explicit(within, method, mesh, arguments, draws)


# What each argument is, of those that are nothing if they are None.
GIVEN = {
    "params": "what `init` of this head gave",
    "tables": "what `tables` of this head gave for the lexicon, {} if that is all",
    "hidden": "floating-point numbers of the shape [..., D]",
    "targets": "word ids, whole numbers",
    "token_weights": "numbers that broadcast to the targets",
}
STATES = ("hidden", "targets", "token_weights")


def _check_given(name, head, arguments):
    """TypeError for an argument that is None, or of text; for a key of `sample` that is none."""
    for argument, wanted in GIVEN.items():
        value = arguments.get(argument, 0)
        if value is None or (argument in STATES and _is_text(value)):
            shown = "None" if value is None else "text"
            raise TypeError(f"{name}: {argument} is {shown}: give {wanted}")
    if name.endswith(".sample"):
        argument_checks.check_key(name, arguments["key"])
    elif arguments.get("key") is not None and head.draws_noise:
        argument_checks.check_key(name, arguments["key"], of_batch=True)


def _check_arrays(name, head, arguments):
    """Looks at the arrays of a head that says what they are: see `zoo.heads.argument_checks`."""
    shapes = _shapes_of(head)
    if shapes is None:
        return
    argument_checks.check_arrays(name, shapes, arguments)
    _check_there(name, head, shapes, arguments)
    prepared = arguments.get("prepared")
    if jax.tree.leaves(prepared):
        wanted = head.prepared_shapes(arguments["tables"], arguments["hidden"].shape[-1])
        argument_checks.check_prepared(name, prepared, wanted)


def _check_there(name, head, shapes, arguments):
    """TypeError for a parameter or a table that the method reads and that is not there."""
    params = dict.fromkeys(path.partition("/")[0] for path in shapes.params)
    of_loss = shapes.loss_tables if name.endswith(LOSSES) else {}
    tables = [*shapes.tables, *of_loss] if "tables" in arguments else []
    for group, paths in {"params": params, "tables": tables}.items():
        for path in paths:
            if argument_checks.has(arguments[group], path):
                continue
            wanted = (
                "give what `init` and `tables` of this head gave for the lexicon, and to a "
                "sampled loss `tables`, not `evaluation_tables`"
            )
            if (group, path) == ("params", "weights") and head.tied:
                wanted = "a tied head is handed the embedding's table as these"
            raise TypeError(f"{name}: {group} have no {path!r}: {wanted}")


def _shapes_of(head):
    """The head's `array_shapes`; None where a class above them makes arrays of its own."""
    return head.array_shapes if _makes_what_it_says(type(head)) else None


def _makes_what_it_says(head_class):
    for kind in head_class.__mro__:
        if "array_shapes" in vars(kind):
            return True
        if {"_init", "_tables"} & {*vars(kind)}:
            return False
    return False


def _is_text(value):
    of_text = isinstance(value, list | tuple) and any(isinstance(item, str) for item in value)
    return of_text or isinstance(value, str)


def _check_sizes(name, sizes):
    """ValueError if parameters and tables are of other numbers of words or features."""
    for what, of_params, of_tables in sizes:
        if of_params != of_tables:
            raise ValueError(
                f"{name}: params are of {of_params:,} {what} and tables of {of_tables:,}: give "
                "those of one lexicon"
            )


def _check_hidden_size(name, parameter_axes, arguments):
    """ValueError if parameters were made for hidden states of another size."""
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
    """TypeError where a head with a background has no context, or one without has some; ValueError
    for one that is not of every token."""
    context = arguments["context"]
    if context is None:
        if head.background is not None:
            raise TypeError(
                f"{name}: the head's {type(head.background).__name__} needs to know what stands "
                "before: give context=, which its `apply` makes of the words before each position"
            )
    elif head.background is not None:
        argument_checks.check_context(name, context, arguments["hidden"].shape[:-1])
    elif _shapes_of(head) is not None and jax.tree.leaves(context):
        raise TypeError(f"{name}: the head has no background: leave context out")


def _arrays(arguments):
    """The arguments that differ from device to device, or that get gradients: not tables and keys,
    for what is drawn with them is the same on all devices."""
    others = ("tables", "key")
    return {name: value for name, value in arguments.items() if name not in others}


def _regular(name, arguments):
    """Hidden states, targets and token weights in regular shapes and types; ValueError names a
    wrong one."""
    regular = {"hidden": _hidden(name, arguments["hidden"])}
    shape = regular["hidden"].shape[:-1]
    if "targets" in arguments:
        regular["targets"] = _targets(name, arguments["targets"], regular["hidden"].shape)
    if "token_weights" in arguments:
        weights = _token_weights(name, arguments["token_weights"], shape, regular["hidden"].dtype)
        regular |= _present(regular["hidden"], regular["targets"], weights)
    return regular


def _hidden(name, hidden):
    if not hidden.ndim or not jnp.issubdtype(hidden.dtype, jnp.floating):
        raise ValueError(
            f"{name}: hidden states are floating-point numbers of the shape [..., D], and these "
            f"are {hidden.dtype} of the shape {hidden.shape}"
        )
    return hidden


def _targets(name, targets, states):
    wanted = states[:-1]
    if targets.shape != wanted:
        raise ValueError(
            f"{name}: hidden states of the shape {states} need targets of the shape {wanted}, one "
            f"for each state, and these have {targets.shape}"
        )
    # Of no targets at all there is nothing to tell the type by: jnp.asarray([]) is float32.
    if targets.size and not jnp.issubdtype(targets.dtype, jnp.integer):
        raise ValueError(
            f"{name}: targets are word ids, whole numbers, and these are {targets.dtype}"
        )
    return targets


def _token_weights(name, weights, wanted, dtype):
    """The token weights [...], of a floating-point type."""
    if not _broadcasts(weights.shape, wanted):
        raise ValueError(
            f"{name}: token_weights of the shape {weights.shape} do not broadcast to the shape "
            f"{wanted} of the targets"
        )
    if not jnp.issubdtype(weights.dtype, jnp.floating):
        if jnp.issubdtype(weights.dtype, jnp.complexfloating):
            raise ValueError(f"{name}: token_weights are real numbers, and these {weights.dtype}")
        weights = weights.astype(jnp.promote_types(dtype, jnp.float32))
    return jnp.broadcast_to(weights, wanted)


def _broadcasts(shape, wanted):
    try:
        return jnp.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def _present(hidden, targets, weights):
    """The states and weights, of which tokens of weight 0 without state or target have no part."""
    hidden, present = present_states(hidden, weights)
    without_target = (weights == 0) & (targets < 0)
    return {"hidden": hidden, "token_weights": without_gradient(present, without_target)}


def _of_no_tokens(function, arguments):
    """The results of a function for no tokens: empty arrays, and 0 where it sums.

    Their shapes and types are those of its results for some tokens, which are not computed.
    """
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
    results = jax.eval_shape(lambda: function(*arguments.values()))
    shape = () if "token_weights" in arguments else shape
    return jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape[len(shape) :]), x.dtype), results)
