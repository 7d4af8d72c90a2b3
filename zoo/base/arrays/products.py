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

# The letters of the axes of an ellipsis, and of the axis that `_contracted_on_cpu` adds.
_LEADING, _ADDED = "ABCDEFGH", "Z"


# Entries of a matrix up to which `by_transpose` copies it: an LSTM of 256 cells.
TRANSPOSED = 1 << 18


def matmul(left, right):
    """Computes left @ right, [..., M] or [...]."""
    if is_narrow(left) or is_narrow(right):
        columns = "m"[: right.ndim - 1]
        return einsum(f"...k,k{columns}->...{columns}", left, right)
    if left.ndim > 2 and sharded_functions.is_local():
        # Of merged axes XLA for CPUs computes the gradient of `right` up to twice as fast.
        product = left.reshape(-1, left.shape[-1]) @ right
        return product.reshape(*left.shape[:-1], *right.shape[1:])
    return left @ right


def matmul_transposed(left, right):
    """Computes left @ right.T, [..., M], without a transposed copy of `right`."""
    if is_narrow(left) or is_narrow(right):
        return einsum("...k,mk->...m", left, right)
    return left @ right.T


def by_transpose(right) -> Callable:
    """Returns a function of `left`, [..., K], that computes left @ right.T, for use in a loop.

    `right`: [M, K]. If it is small, it is transposed once: on CPU a product of 20 rows with the
    copy takes as little as two thirds of the time. With a large copy it takes longer.
    """
    if right.size > TRANSPOSED:
        return lambda left: matmul_transposed(left, right)
    transposed = right.T
    return lambda left: matmul(left, transposed)


def affine(inputs, weights, bias):
    """Computes inputs @ weights + bias, [..., M]."""
    scores = matmul(inputs, weights)
    # Not `broadcast_to`, whose gradient on explicit axes has every device gather all rows.
    return scores + jnp.expand_dims(bias.astype(scores.dtype), range(scores.ndim - bias.ndim))


def gradient(inputs, slopes, weights):
    """Computes the gradient of the weights in matmul(inputs, weights), [K, M], in their type,
    without merging leading axes, which would send all rows of a shared one to every device."""

    def of_weights(inputs, slopes):
        return einsum("...k,...m->km", rounded_as(inputs, weights), slopes).astype(weights.dtype)

    return _sharded_like(weights, of_weights, inputs, slopes)


def _sharded_like(array, function, *operands):
    """Computes function(*operands), which has the array's shape, with the array's sharding, which
    JAX leaves to the caller where a product sums over an explicitly sharded axis."""
    mesh = sharded_functions.explicit_mesh(operands)
    if mesh is None:
        return function(*operands)
    spec = jax.sharding.PartitionSpec(*sharded_functions.spec_of(array))
    return sharded_functions.with_automatic_axes(
        lambda given: function(*given), operands, mesh, lambda result: spec
    )


def both_gradients(slopes, inputs, weights):
    """Computes the gradients of matmul_transposed(inputs, weights), in at least float32."""
    slopes = rounded_as(slopes, weights)
    return matmul(slopes, weights), einsum("nm,nk->mk", slopes, rounded_as(inputs, weights))


def einsum(axes: str, left, right):
    """Computes jnp.einsum of two operands, in at least float32."""
    axes = _in_letters(axes, left, right)
    narrow = [x.dtype for x in (right, left) if is_narrow(x)]
    if not narrow:
        wide = jnp.promote_types(jnp.result_type(left, right), jnp.float32)
        return jnp.einsum(axes, left, right, preferred_element_type=wide)
    left, right = sharded_functions.vary_together((left, right))
    return _rounded_einsum(axes, narrow[0], (left.dtype, right.dtype), left, right)


def _in_letters(axes, left, right):
    for operand, array in zip(_parts(axes)[0], (left, right), strict=True):
        if "..." in operand:
            return axes.replace("...", _LEADING[: array.ndim - len(operand) + len("...")])
    return axes


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _rounded_einsum(axes, narrow, types, left, right):
    return _forward(axes, narrow, types, left, right)[0]


def _forward(axes, narrow, types, left, right):
    rounded = left.astype(narrow), right.astype(narrow)
    return _contracted(axes, *rounded), rounded


def _backward(axes, narrow, types, rounded, cotangent):
    (of_left, of_right), result = _parts(axes)
    left, right = rounded
    cotangent = cotangent.astype(narrow)
    of_left_axes = functools.partial(_contracted, f"{result},{of_right}->{of_left}")
    left_gradient = _sharded_like(left, of_left_axes, cotangent, right)
    # The operand with the gradient's rows comes first: its columns need no transposition after it.
    if of_right[-1] in of_left:
        of_right_axes = functools.partial(_contracted, f"{result},{of_left}->{of_right}")
        right_gradient = _sharded_like(right, of_right_axes, cotangent, left)
    else:
        of_right_axes = functools.partial(_contracted, f"{of_left},{result}->{of_right}")
        right_gradient = _sharded_like(right, of_right_axes, left, cotangent)
    return left_gradient.astype(types[0]), right_gradient.astype(types[1])


_rounded_einsum.defvjp(_forward, _backward)


def _contracted(axes, left, right):
    """Computes the einsum of operands of a narrow type, in float32."""
    plain = functools.partial(jnp.einsum, axes, preferred_element_type=jnp.float32)
    on_cpu = functools.partial(_contracted_on_cpu, axes)
    return jax.lax.platform_dependent(left, right, cpu=on_cpu, default=plain)


def _contracted_on_cpu(axes, left, right):
    """Computes an einsum in a form that XLA for CPUs runs in the narrow type.

    XLA would convert both operands to float32 unless the last axis of `left` is summed, or if there
    are batch axes and an operand is a transposition. If two axes are summed, it copies the operands
    into the order of its product before: so an axis of size 1 is added. Barriers keep operands and
    result as they are: XLA would fold a transposition into the product too late, when it can no
    longer convert the operands, and then fail when the program runs.
    """
    (of_left, of_right), result = _parts(axes)
    shared = [axis for axis in of_left if axis in of_right]
    summed = [axis for axis in shared if axis not in result]
    in_order = shared == summed and of_left[-1:] in summed
    if len(summed) == 1 and not in_order:
        left = jnp.expand_dims(left, of_left.index(summed[0]))
        right = jnp.expand_dims(right, of_right.index(summed[0]))
        axes = axes.replace(summed[0], _ADDED + summed[0])
    left, right = jax.lax.optimization_barrier((left, right))
    product = jnp.einsum(axes, left, right, preferred_element_type=jnp.float32)
    return jax.lax.optimization_barrier(product)


def _parts(axes):
    """Returns ([axes of left, axes of right], axes of the result)."""
    operands, result = axes.split("->")
    return operands.split(","), result
