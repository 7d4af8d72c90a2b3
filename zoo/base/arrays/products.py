"""Products of matrices in the type of the narrower operand, summed in float32.

If an operand is narrower than float32, such as bfloat16, both are rounded to its type, and the
result is float32: between products, arrays stay float32 (Micikevicius et al., "Mixed precision
training", 2018). The weights' type thus tells the precision of a step. The products that give
gradients are computed likewise, and rounded to the types of the operands. Products of float32 and
wider operands are JAX's own.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from zoo.base.arrays import sharded_functions
from zoo.base.arrays.precision import is_narrow, rounded_as
from zoo.base.arrays.types import Array

# The letters of the axes of an ellipsis, and of the axis that `_contracted_on_cpu` adds.
_LEADING, _ADDED = "ABCDEFGH", "Z"


# Entries of a matrix up to which `by_transpose` copies it: an LSTM of 256 cells. Entries from which
# so few rows are multiplied as columns on CPU: a GRU of 512 cells.
TRANSPOSED, COLUMNS, MOST_ROWS = 1 << 18, 1 << 19, 64
# Products of entries from which so few rows are multiplied as columns in a narrow type: 32 rows by
# an LSTM of 256 cells. Fewer rows gain nothing, and fewer steps of a loop do not pay for a copy.
NARROW_COLUMNS, LEAST_ROWS, LEAST_STEPS = 1 << 23, 16, 16


def matmul(lhs: Array, rhs: Array) -> Array:
    """Computes lhs @ rhs, [..., M] or [...]."""
    if is_narrow(lhs) or is_narrow(rhs):
        columns = "m"[: rhs.ndim - 1]
        return einsum(f"...k,k{columns}->...{columns}", lhs, rhs)
    if lhs.ndim > 2 and sharded_functions.is_local((lhs, rhs)):
        # Of merged axes XLA for CPUs computes the gradient of `rhs` up to twice as fast.
        product = matmul(lhs.reshape(-1, lhs.shape[-1]), rhs)
        return product.reshape(*lhs.shape[:-1], *rhs.shape[1:])
    if _is_few_by_many(lhs, rhs):
        return jax.lax.platform_dependent(lhs, rhs, cpu=_matmul_of_columns, default=jnp.matmul)
    return lhs @ rhs


def matmul_transposed(lhs: Array, rhs: Array) -> Array:
    """Computes lhs @ rhs.T, [..., M], without a transposed copy of `rhs`."""
    if is_narrow(lhs) or is_narrow(rhs):
        return einsum("...k,mk->...m", lhs, rhs)
    # Of more than 32 rows it is worth while where the result is wider than the sum.
    if _is_few_by_many(lhs, rhs) and (len(rhs) > len(rhs.T) or len(lhs) <= MOST_ROWS // 2):
        forms = {"cpu": _matmul_columns, "default": lambda lhs, rhs: lhs @ rhs.T}
        return jax.lax.platform_dependent(lhs, rhs, **forms)
    return lhs @ rhs.T


def by_matrix(rhs: Array, steps: int) -> Callable[[Array], Array]:
    """Returns a function of `lhs`, [..., K], that computes lhs @ rhs, for a loop of many steps.

    `rhs`: [K, M]. In a narrow type it is transposed once, if the loop is long enough, so that
    columns can be multiplied: on CPU a product of 32 rows then takes half of the time.
    """
    if is_narrow(rhs) and isinstance(steps, int) and steps >= LEAST_STEPS:
        transposed = rhs.T
        return lambda lhs: matmul_transposed(lhs, transposed)
    return lambda lhs: matmul(lhs, rhs)


def by_transpose(rhs: Array) -> Callable[[Array], Array]:
    """Returns a function of `lhs`, [..., K], that computes lhs @ rhs.T, for use in a loop.

    `rhs`: [M, K]. If it is small, it is transposed once: on CPU a product of 20 rows with the
    copy takes as little as two thirds of the time. With a large copy it takes longer.
    """
    if rhs.size <= TRANSPOSED and not is_narrow(rhs):
        transposed = rhs.T
        return lambda lhs: matmul(lhs, transposed)
    return lambda lhs: matmul_transposed(lhs, rhs)


def _is_few_by_many(lhs, rhs) -> bool:
    """Whether few rows meet a large matrix: XLA for CPUs multiplies them slowly as they are."""
    is_few = lhs.ndim == rhs.ndim == 2 and isinstance(lhs.shape[0], int) and rhs.size >= COLUMNS
    return is_few and 1 < len(lhs) <= MOST_ROWS and sharded_functions.is_local((lhs, rhs))


def _matmul_of_columns(lhs, rhs):
    """Computes lhs @ rhs from lhs.T, of which a barrier keeps XLA from making lhs again."""
    return jax.lax.optimization_barrier(lhs.T).T @ rhs


def _matmul_columns(lhs, rhs):
    """Computes rhs @ lhs.T and transposes it; without barriers XLA would compute lhs @ rhs.T."""
    columns = jax.lax.optimization_barrier(lhs.T)
    return jax.lax.optimization_barrier(rhs @ columns).T


def affine(inputs: Array, weights: Array, bias: Array) -> Array:
    """Computes inputs @ weights + bias, [..., M]."""
    scores = matmul(inputs, weights)
    # Not `broadcast_to`, whose gradient on explicit axes has every device gather all rows.
    return scores + jnp.expand_dims(bias.astype(scores.dtype), range(scores.ndim - bias.ndim))


def gradient(inputs: Array, cotangent: Array, weights: Array) -> Array:
    """Computes the gradient of the weights in matmul(inputs, weights), [K, M], in their type,
    without merging leading axes, which would send all rows of a shared one to every device."""

    def compute(inputs, cotangent):
        return einsum("...k,...m->km", rounded_as(inputs, weights), cotangent).astype(weights.dtype)

    return _sharded_like(weights, compute, inputs, cotangent)


def _sharded_like(array, function, *operands):
    """Computes function(*operands), which has the array's shape, with the array's sharding, which
    JAX leaves to the caller where a product sums over an explicitly sharded axis."""
    mesh = sharded_functions.explicit_mesh(operands)
    if mesh is None:
        return function(*operands)
    spec = jax.sharding.PartitionSpec(*sharded_functions.spec_of(array))
    return sharded_functions.with_automatic_axes(
        lambda arrays: function(*arrays), operands, mesh, lambda result: spec
    )


def both_gradients(cotangent: Array, inputs: Array, weights: Array) -> tuple[Array, Array]:
    """Computes the gradients of the inputs and the weights in matmul_transposed(inputs, weights),
    in at least float32."""
    cotangent = rounded_as(cotangent, weights)
    return matmul(cotangent, weights), einsum("nm,nk->mk", cotangent, rounded_as(inputs, weights))


def einsum(axes: str, lhs: Array, rhs: Array) -> Array:
    """Computes jnp.einsum of two operands, in at least float32."""
    for operand, array in zip(_parts(axes)[0], (lhs, rhs), strict=True):
        if "..." in operand:
            axes = axes.replace("...", _LEADING[: array.ndim - len(operand) + len("...")])
    narrow = [x.dtype for x in (rhs, lhs) if is_narrow(x)]
    if not narrow:
        wide = jnp.promote_types(jnp.result_type(lhs, rhs), jnp.float32)
        return jnp.einsum(axes, lhs, rhs, preferred_element_type=wide)
    lhs, rhs = sharded_functions.vary_together((lhs, rhs))
    return _rounded_einsum(axes, narrow[0], (lhs.dtype, rhs.dtype), lhs, rhs)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _rounded_einsum(axes, narrow, types, lhs, rhs):
    return _forward(axes, narrow, types, lhs, rhs)[0]


def _forward(axes, narrow, types, lhs, rhs):
    rounded = lhs.astype(narrow), rhs.astype(narrow)
    return _contracted(axes, *rounded), rounded


def _backward(axes, narrow, types, rounded, cotangent):
    (left_axes, right_axes), result = _parts(axes)
    lhs, rhs = rounded
    cotangent = cotangent.astype(narrow)
    left_product = functools.partial(_contracted, f"{result},{right_axes}->{left_axes}")
    left_gradient = _sharded_like(lhs, left_product, cotangent, rhs)
    # The operand with the gradient's rows comes first: its columns need no transposition after it.
    if right_axes[-1] in left_axes:
        right_product = functools.partial(_contracted, f"{result},{left_axes}->{right_axes}")
        right_gradient = _sharded_like(rhs, right_product, cotangent, lhs)
    else:
        right_product = functools.partial(_contracted, f"{left_axes},{result}->{right_axes}")
        right_gradient = _sharded_like(rhs, right_product, lhs, cotangent)
    return left_gradient.astype(types[0]), right_gradient.astype(types[1])


_rounded_einsum.defvjp(_forward, _backward)


def _contracted(axes, lhs, rhs):
    """Computes the einsum of operands of a narrow type, in float32."""
    plain = functools.partial(jnp.einsum, axes, preferred_element_type=jnp.float32)
    on_cpu = functools.partial(_contracted_on_cpu, axes)
    return jax.lax.platform_dependent(lhs, rhs, cpu=on_cpu, default=plain)


def _contracted_on_cpu(axes, lhs, rhs):
    """Computes an einsum in a form that XLA for CPUs runs in the narrow type.

    XLA would convert both operands to float32 unless the last axis of `lhs` is summed, or if there
    are batch axes and an operand is a transposition. If two axes are summed, it copies the operands
    into the order of its product before: so an axis of size 1 is added. Barriers keep operands and
    result as they are: XLA would fold a transposition into the product too late, when it can no
    longer convert the operands, and then fail when the program runs.
    """
    (left_axes, right_axes), result = _parts(axes)
    shared = [axis for axis in left_axes if axis in right_axes]
    summed = [axis for axis in shared if axis not in result]
    in_order = shared == summed and left_axes[-1:] in summed
    if len(summed) == 1 and not in_order:
        lhs = jnp.expand_dims(lhs, left_axes.index(summed[0]))
        rhs = jnp.expand_dims(rhs, right_axes.index(summed[0]))
        axes = axes.replace(summed[0], _ADDED + summed[0])
    lhs, rhs = jax.lax.optimization_barrier((lhs, rhs))
    if in_order and lhs.ndim == rhs.ndim == 2 and right_axes[-1:] in summed:
        rows = lhs.shape[0]
        few = isinstance(rows, int) and LEAST_ROWS <= rows <= MOST_ROWS
        if few and rows * rhs.size >= NARROW_COLUMNS:
            columns = jnp.einsum("mk,nk->mn", rhs, lhs, preferred_element_type=jnp.float32)
            return jax.lax.optimization_barrier(columns).T
    product = jnp.einsum(axes, lhs, rhs, preferred_element_type=jnp.float32)
    return jax.lax.optimization_barrier(product)


def _parts(axes):
    """Returns ([axes of left, axes of right], axes of the result)."""
    operands, result = axes.split("->")
    return operands.split(","), result
