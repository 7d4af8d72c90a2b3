"""Layouts of arrays over four devices, and what a program that was compiled for one does."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from zoo.lab.training import product_counts
from zoo.lab.training.compiled_programs import KINDS, Collective, read

# ---------------------------------------------------------------- what a program does


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program of one device, and its results.

    Attributes:
      flops: of its products of matrices.
    """

    collectives: tuple[Collective, ...]
    flops: int
    results: Any

    @property
    def sent(self) -> int:
        """Bytes of the results of all transfers."""
        return sum(c.size * c.times for c in self.collectives)

    def largest(self, *kinds: str) -> int:
        """Bytes of the largest result of transfers of these kinds, all if none; 0 without any."""
        return max((c.size for c in self.collectives if c.kind in (kinds or KINDS)), default=0)

    def summary(self) -> dict[str, tuple[int, int]]:
        """{kind: (how often, bytes of the largest)}, for a person to read."""
        return {
            kind: (sum(c.times for c in self.collectives if c.kind == kind), self.largest(kind))
            for kind in sorted({c.kind for c in self.collectives})
        }


def run(function, *arguments) -> Program:
    """The program of function(*arguments) as the arguments lie on the devices, run once.

    It is not run, and the results are None, where arguments are shapes.
    """
    compiled = function.lower(*arguments).compile()
    shapes = any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(arguments))
    collectives, products = read(compiled.as_text())
    flops = int(product_counts.operations(products))
    return Program(collectives, flops, None if shapes else compiled(*arguments))


def put(x, sharding):
    """An array, or a shape, laid out."""
    if isinstance(x, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)
    return jax.device_put(x, sharding)


# ---------------------------------------------------------------- layouts


@dataclasses.dataclass(frozen=True)
class Layout:
    """A way to lay the arguments of a head's method over the devices.

    Attributes:
      run: (method, params, tables, token_arrays, key, axes) -> Program. method is a function of
        (params, tables, *token_arrays, key), leaves of token_arrays [B, ...], B a multiple of four,
        to a dict of results: "sum" over tokens; gradients of "params"; and values of "tokens",
        [B, ...]. axes: a tree like params of the names of their axes, "words" or None.
      batch, words: whether tokens, and whether rows of the parameters are shared out.
    """

    run: Callable
    batch: bool
    words: bool


def _mesh(kind, **axes):
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes))


def _placed(kind, batch, words, in_context, method, params, tables, token_arrays, key, axes):
    """Arguments placed on a mesh, and jax left to find the rest."""
    sizes = {"data": 4 if not words else 2 if batch else 1, "model": 4 // (2 if batch else 1)}
    sizes["model"] = 4 // sizes["data"]
    mesh = _mesh(kind, **sizes)

    def on_mesh(x, *spec):
        return put(x, NamedSharding(mesh, P(*spec)))

    def rows(x, names):
        spec = [
            "model" if words and name == "words" and size % sizes["model"] == 0 else None
            for name, size in zip(names, x.shape, strict=True)
        ]
        return on_mesh(x, *spec)

    arguments = (
        jax.tree.map(rows, params, axes),
        jax.tree.map(on_mesh, tables),
        *(
            jax.tree.map(lambda x: on_mesh(x, *(("data",) if batch else ())), x)
            for x in token_arrays
        ),
        on_mesh(key),
    )
    if not in_context:
        return run(jax.jit(method), *arguments)
    with jax.set_mesh(mesh):
        return run(jax.jit(method), *arguments)


def _shard_mapped(method, params, tables, token_arrays, key, axes):
    """jax.shard_map with its default check, parameters and tables on every device."""
    mesh = _mesh(AxisType.Auto, data=4)
    shapes = jax.eval_shape(method, params, tables, *token_arrays, key)

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P(), *(P("data") for _ in token_arrays), P()),
        # Gradients of parameters are the sum over all devices already, as the check has it.
        out_specs={name: P("data") if name == "tokens" else P() for name in shapes},
    )
    def function(*arguments):
        results = method(*arguments)
        return {n: jax.lax.psum(x, "data") if n == "sum" else x for n, x in results.items()}

    put_everywhere = functools.partial(put, sharding=NamedSharding(mesh, P()))
    put_by_rows = functools.partial(put, sharding=NamedSharding(mesh, P("data")))
    arguments = (
        jax.tree.map(put_everywhere, params),
        jax.tree.map(put_everywhere, tables),
        *(jax.tree.map(put_by_rows, x) for x in token_arrays),
        put_everywhere(key),
    )
    return run(jax.jit(function), *arguments)


def _pmapped(method, params, tables, token_arrays, key, axes):
    """jax.pmap over the batch; sums and gradients of parameters are summed over the devices."""
    batch_rows = token_arrays[0].shape[0]

    def function(*arguments):
        results = method(*arguments)
        return {n: x if n == "tokens" else jax.lax.psum(x, "data") for n, x in results.items()}

    parts = [
        jax.tree.map(lambda x: x.reshape(4, batch_rows // 4, *x.shape[1:]), x) for x in token_arrays
    ]
    in_axes = (None, None, *(0 for _ in token_arrays), None)
    mapped = jax.pmap(function, axis_name="data", in_axes=in_axes)
    results = jax.tree.map(np.asarray, mapped(params, tables, *parts, key))

    def join(name, x):
        return x.reshape(batch_rows, *x.shape[2:]) if name == "tokens" else x[0]

    joined_results = {n: jax.tree.map(functools.partial(join, n), x) for n, x in results.items()}
    return Program((), 0, joined_results)


def _in_shardings(method, params, tables, token_arrays, key, axes):
    """Arrays that lie nowhere, and layouts of them that jax.jit alone is given."""
    mesh = _mesh(AxisType.Auto, data=4)
    everywhere, rows = (NamedSharding(mesh, spec) for spec in (P(), P("data")))
    layouts = (everywhere, everywhere, *(rows for _ in token_arrays), everywhere)
    arguments = (params, tables, *token_arrays, key)
    # A function of its own: another layout's program of the method would be taken again.
    return run(jax.jit(lambda *leaves: method(*leaves), in_shardings=layouts), *arguments)


def _on_one_device(method, params, tables, token_arrays, key, axes):
    return run(jax.jit(method), params, tables, *token_arrays, key)


AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def _layout(kind, batch, words, in_context=False):
    return Layout(functools.partial(_placed, kind, batch, words, in_context), batch, words)


ONE_DEVICE = Layout(_on_one_device, False, False)
LAYOUTS = {
    "batch, automatic": _layout(AUTO, True, False),
    "batch, explicit": _layout(EXPLICIT, True, False),
    "batch, explicit, in context": _layout(EXPLICIT, True, False, in_context=True),
    "batch, in_shardings": Layout(_in_shardings, True, False),
    "batch, shard_map": Layout(_shard_mapped, True, False),
    "batch, pmap": Layout(_pmapped, True, False),
    "words, automatic": _layout(AUTO, False, True),
    "words, explicit": _layout(EXPLICIT, False, True),
    "batch and words, automatic": _layout(AUTO, True, True),
    "batch and words, explicit": _layout(EXPLICIT, True, True),
}
