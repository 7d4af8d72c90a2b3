"""A head's methods on arrays that lie over the explicit axes of a mesh, see `jax.make_mesh`.

If tokens are sharded, every device computes the results of its own tokens alone, and sums over
tokens are added over devices once, at the end. Methods that draw random numbers compute all tokens
together, so that every layout draws the same numbers. Parameters may be sharded by their words,
along other axes: the compiler then inserts the communication that sums over words need.
"""

import math

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from zoo.arrays import sharded_functions

OF_TOKENS = ("targets", "token_weights", "context")


def over_explicit(function, method, mesh, given, draws):
    """Computes function(**given), a method of a head, with results laid out like its arguments.

    Gives the method's results. Their token axes are laid out like the hidden states, and a word
    axis like the words of the parameters.
    """
    of_tokens = sharded_functions.spec_of(given["hidden"])[:-1]
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
    return sharded_functions.automatic(whole, given, mesh, spec)


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


def _devices(mesh, axes) -> int:
    """Counts the devices along some axes of a mesh."""
    return math.prod(mesh.shape[name] for name in axes)


def _on_each_device(function, of_tokens, axes, given):
    """Computes function(**given) on each device's own tokens, which lie over `axes`."""
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
