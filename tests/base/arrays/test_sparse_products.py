"""Sparse products against dense ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from zoo.base.arrays import sparse_products
from zoo.lab.training import compiled_programs

SHAPES = {
    "wide rows": (3, 90, 0.9),
    "tall": (41, 5, 0.4),
    "empty": (4, 3, 0.0),
    "many lists": (4500, 7, 0.3),
    "a number": (1, 1, 1.0),
}


def dense_matrix(random, height, width, share):
    values = random.normal(size=(height, width)).astype(np.float32)
    return values * (random.uniform(size=(height, width)) < share)


def levels_of(matrix):
    rows, columns = np.nonzero(matrix)
    return sparse_products.levels(rows, columns, matrix[rows, columns], len(matrix))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", SHAPES)
def test_the_product_and_its_gradient(random, name):
    matrix = dense_matrix(random, *SHAPES[name])
    dense = random.normal(size=(matrix.shape[1], 5))
    cotangent = random.normal(size=(matrix.shape[0], 5))
    levels = jax.tree.map(jnp.asarray, (levels_of(matrix), levels_of(matrix.T)))

    @jax.jit
    def forward_and_backward(levels, dense, cotangent):
        result, transposed = jax.vjp(lambda dense: sparse_products.product(*levels, dense), dense)
        return result, transposed(cotangent)[0]

    result, gradient = forward_and_backward(levels, jnp.asarray(dense), jnp.asarray(cotangent))
    np.testing.assert_allclose(result, matrix @ dense, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(gradient, matrix.T @ cotangent, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("share", [0.9, 0.0])
def test_a_mesh_sends_sums_of_rows_that_are_more_than_the_lists(random, share):
    matrix = dense_matrix(random, 3, 91, share)
    dense = random.normal(size=(91, 5)).astype(np.float32)
    levels = jax.tree.map(jnp.asarray, levels_of(matrix))
    mesh = jax.make_mesh((2, 2), ("data", "words"), axis_types=(AxisType.Auto,) * 2)
    arrays = jax.device_put((levels, dense), NamedSharding(mesh, PartitionSpec()))

    @jax.jit
    def product(levels, dense):
        words = NamedSharding(mesh, PartitionSpec("words"))
        dense = jax.lax.with_sharding_constraint(dense * 2, words)  # which 2 does not divide
        return sparse_products.product_of_parts(levels, dense)

    program = product.lower(*arrays).compile()
    np.testing.assert_allclose(program(*arrays), 2 * matrix @ dense, rtol=1e-5, atol=1e-5)
    collectives, _ = compiled_programs.read(program.as_text())
    lists = sum(len(level["columns"]) for level in levels)
    assert sum(each.size * each.times for each in collectives) <= lists * 5 * 4


def test_levels_by_hand():
    """A row of nine entries has two lists, which a second level puts together."""
    rows, columns = np.array([1] * 9 + [0]), np.array([*range(9), 3])
    first, second = sparse_products.levels(rows, columns, np.arange(1.0, 11), 3, width=8)
    assert first["columns"][:, 0].tolist() == [3, 0, 8, 0]
    assert first["values"].sum(axis=1).tolist() == [10, 36, 9, 0]
    assert second["columns"][:, :2].tolist() == [[0, 0], [1, 2], [3, 0]]
    assert second["values"].sum(axis=1).tolist() == [1, 2, 1]
