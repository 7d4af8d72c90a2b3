"""Counted operations and bytes, and the paper's estimates that are made of them, by hand."""

import jax
import jax.numpy as jnp

from benchmarks import compiled, costs
from benchmarks.costs import Product
from zoo.cores import LSTM


def shape(*sizes, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(sizes, dtype)


def test_a_product_by_hand():
    products = costs.count_products(lambda a, b: jnp.tanh(a @ b), shape(3, 5), shape(5, 7))
    assert products == {Product(2 * 3 * 5 * 7, 4 * (15 + 35 + 21)): 1}
    # The gradient has two more.
    gradient = jax.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1))
    assert (
        costs.operations(costs.count_products(gradient, shape(3, 5), shape(5, 7)))
        >= 2 * 2 * 3 * 5 * 7
    )


def test_a_loop_counts_as_often_as_it_runs():
    def function(carry, steps):
        return jax.lax.scan(lambda h, x: (h @ x, None), carry, steps)[0]

    products = costs.count_products(jax.jit(function), shape(2, 5), shape(11, 5, 5))
    assert products == {Product(2 * 2 * 5 * 5, 4 * (10 + 25 + 10)): 11}


def test_a_convolution_and_rows_by_hand():
    def convolve(x, kernel):
        return jax.lax.conv_general_dilated(
            x, kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
        )

    products = costs.count_products(convolve, shape(2, 9, 3), shape(4, 3, 7))
    assert [product.operations for product in products] == [2 * (2 * 6 * 7) * (4 * 3)]
    rows = costs.count_products(lambda table, i: table[i], shape(13, 7), shape(5, dtype=jnp.int32))
    assert [product.bytes for product in rows] == [2 * 5 * 7 * 4]
    scatters = costs.count_products(
        lambda table, i, updates: table.at[i].add(updates),
        *(shape(13, 7), shape(5, dtype=jnp.int32), shape(5, 7)),
    )
    assert [product.bytes for product in scatters] == [3 * 5 * 7 * 4]


def test_the_longer_branch_counts():
    def function(predicate, a):
        return jax.lax.cond(predicate, lambda a: a @ a, lambda a: a @ a @ a, a)

    products = costs.count_products(function, shape(dtype=bool), shape(5, 5))
    assert costs.operations(products) == 2 * 2 * 5**3


def test_an_lstm_is_counted():
    core = LSTM(size=7)
    params = jax.eval_shape(lambda: core.init(jax.random.key(0), 5))
    carry = jax.eval_shape(lambda: core.initial_carry(3))
    products = costs.count_products(core.apply, params, shape(3, 11, 5), carry)
    # Per position 5 + 7 numbers times four gates of 7.
    assert costs.operations(products) == 3 * 11 * 2 * (5 + 7) * 4 * 7


PROGRAM = """
HloModule step, num_partitions=8

%body (p: f32[3,5]) -> f32[3,5] {
  %p = f32[3,5] parameter(0)
  %w = f32[5,5] constant(1)
  %h = f32[3,5] dot(%p, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %s = f32[3,5] all-reduce(%h), replica_groups=[4,2]<=[8]
}

ENTRY %main (a: f32[3,5]) -> f32[3,5] {
  %a = f32[3,5] parameter(0)
  %l = f32[3,5] while(%a), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  %g = bf16[12] all-gather(%l), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}
  %m = pred[6] reduce-scatter(%g), replica_groups=mesh['x'=4,'y'=2] {'y'}
  ROOT %e = (s32[2], u8[4]) all-to-all(%m, %m)
}
"""


def test_a_compiled_program_by_hand():
    collectives, products = compiled.read(PROGRAM)
    assert {(c.kind, c.size, c.devices, c.times): c.sent for c in collectives} == {
        ("all-reduce", 60, 2, 7): 60,  # half of it to be summed, half of it to be known
        ("all-gather", 24, 4, 1): 18,
        ("reduce-scatter", 6, 2, 1): 6,
        ("all-to-all", 12, 8, 1): 10.5,
    }
    assert products == {Product(2 * 3 * 5 * 5, 60 + 100 + 60): 7}
