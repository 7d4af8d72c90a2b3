"""Operations and bytes of a traced function, counted product by product.

XLA's own analysis counts the body of a loop once, whatever its length, and an LSTM is a loop; here
the body of a `scan` counts as often as it runs. A `while` loop, of unknown length, counts once.
"""

import collections
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Product:
    """A matrix product, a convolution, a gather, or a scatter."""

    operations: float  # multiplications and additions
    bytes: float  # of the operands and the result
    # Of matrices: how many products, their rows, summed axis and columns; the operands' type.
    shape: tuple[int, ...] = ()
    dtype: str = ""


def count_products(function, *shapes) -> collections.Counter:
    """Returns {product: how often it runs} of a function, traced for some shapes."""
    counts: collections.Counter = collections.Counter()
    for product, times in _trace_products(jax.make_jaxpr(function)(*shapes).jaxpr, 1):
        counts[product] += times
    return counts


def operations(products: collections.Counter) -> float:
    """Returns the total number of operations."""
    return sum(product.operations * times for product, times in products.items())


def seconds(products: collections.Counter, a_second: float, bytes_a_second: float) -> float:
    """Returns the time of the products in sequence, each bound by arithmetic or by memory."""
    return sum(
        times * max(product.operations / a_second, product.bytes / bytes_a_second)
        for product, times in products.items()
    )


def _trace_products(jaxpr, times) -> Iterator[tuple[Product, int]]:
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "dot_general":
            yield _product(equation), times
        elif name == "conv_general_dilated":
            yield _convolution(equation), times
        elif name == "gather":
            yield Product(0, 2 * _bytes(equation.outvars)), times
        elif name.startswith("scatter"):
            yield Product(0, 3 * _bytes(equation.invars[2:])), times
        elif name == "cond":
            branches = [[*_trace_products(branch.jaxpr, times)] for branch in params["branches"]]
            yield from max(branches, key=lambda branch: sum(p.operations * n for p, n in branch))
        else:
            inner = times * (params["length"] if name == "scan" else 1)
            for value in jax.tree.leaves(list(params.values()), is_leaf=_is_jaxpr):
                if _is_jaxpr(value):
                    yield from _trace_products(getattr(value, "jaxpr", value), inner)


def _is_jaxpr(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def _product(equation) -> Product:
    (contracted, _), (batch, _) = equation.params["dimension_numbers"]
    lhs = equation.invars[0].aval
    summed, count = (math.prod(lhs.shape[axis] for axis in axes) for axes in (contracted, batch))
    rows, result = lhs.size // (summed * count), equation.outvars[0].aval.size
    shape = count, rows, summed, result // (rows * count)
    operands_and_result = _bytes([*equation.invars, *equation.outvars])
    return Product(2 * result * summed, operands_and_result, shape, lhs.dtype.name)


def _convolution(equation) -> Product:
    kernel = equation.invars[1].aval.shape
    outputs = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    result = math.prod(equation.outvars[0].aval.shape)
    multiplied = math.prod(kernel) // outputs
    return Product(2 * result * multiplied, _bytes([*equation.invars, *equation.outvars]))


def _bytes(variables) -> int:
    shapes = [variable.aval for variable in variables]
    return sum(math.prod(shape.shape) * shape.dtype.itemsize for shape in shapes)
