"""A head's methods where arrays lie over the explicit axes of a mesh, which `jax.make_mesh` makes.

Tokens that are shared out over devices are each device's own: every one computes its tokens as if
there were no others, and what is summed over tokens is summed over devices once, at the end. What
draws random numbers does so for all tokens together, so that what is drawn is the same in every
layout. Parameters may be shared out by their words, along other axes: the compiler finds what sums
over words have to send.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from zoo.arrays import layouts

OF_TOKENS = ("targets", "token_weights", "context")


def over_explicit(function, method, mesh, given, draws):
    """Computes function(**given), a method of a head; results lie as its arguments do.

    Args:
      function: the method, which looks at its arguments.
      method: its name.
      mesh: see `layouts.explicit_mesh`.
      given: its arguments by name.
      draws: whether random numbers are drawn, which all tokens then share.

    Returns:
      What the method gives. What is of tokens lies as the hidden states do, what is of all words
      as the words of the parameters.
    """
    of_tokens = layouts.spec_of(given["hidden"])[:-1]
    axes = {name for names in of_tokens for name in names}
    words = _axes_of_words(given["params"], axes) if method == "log_probs" else ()

    def spec(result):
        if result.ndim < len(of_tokens):
            return PartitionSpec()
        last = [words if result.shape[-1] % _devices(mesh, words) == 0 else ()]
        return PartitionSpec(*of_tokens, *last * (result.ndim - len(of_tokens)))

    def whole(given):
        if not axes or draws:
            return function(**given)
        return _on_each_device(function, of_tokens, axes, given)

    given = {name: value for name, value in given.items() if value is not None}
    return layouts.automatic(whole, given, mesh, spec)


def _axes_of_words(params, without) -> tuple[str, ...]:
    """The mesh's axes over which rows of the parameters lie, but for those in `without`."""
    row_axes = [layouts.spec_of(x)[:1] for x in jax.tree.leaves(params) if isinstance(x, jax.Array)]
    return next(
        (names for of_rows in row_axes for names in of_rows if names and not without & {*names}), ()
    )


def _devices(mesh, axes) -> int:
    """How many devices share out what lies over the axes."""
    count = 1
    for name in axes:
        count *= mesh.shape[name]
    return count


def _on_each_device(function, of_tokens, axes, given):
    """function(**given), each device with its own tokens, which lie over `axes`.

    Args:
      of_tokens: the axes of the mesh over which each axis of the tokens lies.
    """
    shape = given["hidden"].shape[:-1]
    rows, whole = PartitionSpec(*of_tokens), PartitionSpec()

    def spec(name, leaf):
        its = jnp.shape(leaf)[: len(shape)] == shape
        return rows if name == "hidden" or (name in OF_TOKENS and its) else whole

    if "token_weights" in given:
        given = {**given, "token_weights": jnp.broadcast_to(given["token_weights"], shape)}
    others = {name: value for name, value in given.items() if name == "k"}
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
