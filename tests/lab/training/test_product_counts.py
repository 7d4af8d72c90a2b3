"""Counted operations and bytes, by hand."""

import jax
import jax.numpy as jnp

from zoo.cores import LSTM
from zoo.lab.training import product_counts
from zoo.lab.training.product_counts import Product


def shape(*sizes, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(sizes, dtype)


def test_a_product_by_hand():
    products = product_counts.count_products(lambda a, b: jnp.tanh(a @ b), shape(3, 5), shape(5, 7))
    expected = Product(2 * 3 * 5 * 7, 4 * (15 + 35 + 21), (1, 3, 5, 7), "float32")
    assert products == {expected: 1}
    # The gradient has two more.
    gradient = jax.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1))
    assert (
        product_counts.operations(product_counts.count_products(gradient, shape(3, 5), shape(5, 7)))
        >= 2 * 2 * 3 * 5 * 7
    )


def test_a_loop_counts_as_often_as_it_runs():
    def function(carry, steps):
        return jax.lax.scan(lambda h, x: (h @ x, None), carry, steps)[0]

    products = product_counts.count_products(jax.jit(function), shape(2, 5), shape(11, 5, 5))
    assert products == {Product(2 * 2 * 5 * 5, 4 * (10 + 25 + 10), (1, 2, 5, 5), "float32"): 11}


def test_products_side_by_side_have_the_shape_of_one():
    operands = shape(2, 3, 5, dtype=jnp.bfloat16), shape(2, 7, 5, dtype=jnp.bfloat16)
    products = product_counts.count_products(
        lambda a, b: jnp.einsum("bik,bjk->bij", a, b), *operands
    )
    expected = Product(2 * 2 * 3 * 5 * 7, 2 * (30 + 70 + 42), (2, 3, 5, 7), "bfloat16")
    assert products == {expected: 1}


def test_a_convolution_and_rows_by_hand():
    def convolve(x, kernel):
        return jax.lax.conv_general_dilated(
            x, kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
        )

    products = product_counts.count_products(convolve, shape(2, 9, 3), shape(4, 3, 7))
    assert [product.operations for product in products] == [2 * (2 * 6 * 7) * (4 * 3)]
    rows = product_counts.count_products(
        lambda table, i: table[i], shape(13, 7), shape(5, dtype=jnp.int32)
    )
    assert [product.bytes for product in rows] == [2 * 5 * 7 * 4]
    scatters = product_counts.count_products(
        lambda table, i, updates: table.at[i].add(updates),
        *(shape(13, 7), shape(5, dtype=jnp.int32), shape(5, 7)),
    )
    assert [product.bytes for product in scatters] == [3 * 5 * 7 * 4]


def test_the_longer_branch_counts():
    def function(predicate, a):
        return jax.lax.cond(predicate, lambda a: a @ a, lambda a: a @ a @ a, a)

    products = product_counts.count_products(function, shape(dtype=bool), shape(5, 5))
    assert product_counts.operations(products) == 2 * 2 * 5**3


def test_an_lstm_is_counted():
    core = LSTM(size=7)
    params = jax.eval_shape(lambda: core.init(jax.random.key(0), 5))
    carry = jax.eval_shape(lambda: core.initial_carry(3))
    products = product_counts.count_products(core.apply, params, shape(3, 11, 5), carry)
    # Per position 5 + 7 numbers times four gates of 7.
    assert product_counts.operations(products) == 3 * 11 * 2 * (5 + 7) * 4 * 7
