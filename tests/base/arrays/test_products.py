"""Products of a narrow type: rounded operands, everything else float32."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo.base.arrays import products, row_lookup, sharded_functions

B16, F32 = jnp.bfloat16, jnp.float32
# (function, shapes of its operands, the einsum that it computes); odd sizes, and sizes above those
# from which XLA for CPUs takes its fast product.
PRODUCTS = {
    "matrices": (products.matmul, (5, 7), (7, 13), "ak,km->am"),
    "large matrices": (products.matmul, (33, 64), (64, 130), "ak,km->am"),
    "batch rows": (products.matmul, (3, 5, 7), (7, 13), "abk,km->abm"),
    "large batch rows": (products.matmul, (8, 9, 64), (64, 130), "abk,km->abm"),
    "a vector": (products.matmul, (3, 5, 7), (7,), "abk,k->ab"),
    "one row": (products.matmul, (7,), (7, 13), "k,km->m"),
    "transposed": (products.matmul_transposed, (3, 5, 7), (13, 7), "abk,mk->abm"),
    "large transposed": (products.matmul_transposed, (33, 64), (130, 64), "ak,mk->am"),
    **{
        axes: (functools.partial(products.einsum, axes), lhs, rhs, axes)
        for axes, lhs, rhs in (
            ("btd,bsd->bts", (3, 5, 7), (3, 4, 7)),
            ("bts,bsm->btm", (3, 17, 33), (3, 33, 64)),
            ("nmd,nd->nm", (5, 13, 7), (5, 7)),
            ("nd,nd->n", (5, 7), (5, 7)),
            ("fn,fd->nd", (33, 18), (33, 64)),
        )
    },
}

# Of the small and of the large, and of each way of writing them.
EXAMPLES = (
    "large matrices",
    "batch rows",
    "one row",
    "large transposed",
    "bts,bsm->btm",
    "nd,nd->n",
)
NAMES = [*EXAMPLES, *slow(*(name for name in PRODUCTS if name not in EXAMPLES))]


def arrays(random, *shapes, types=(F32, B16)):
    return [
        jnp.asarray(random.normal(size=shape), F32).astype(dtype)
        for shape, dtype in zip(shapes, types, strict=True)
    ]


def wide(array):
    """In float64, of what bfloat16 keeps of an array."""
    return np.asarray(array.astype(B16), np.float64)


def gradient_axes(axes):
    operands, result = axes.split("->")
    lhs, rhs = operands.split(",")
    return f"{result},{rhs}->{lhs}", f"{lhs},{result}->{rhs}"


@pytest.mark.parametrize("types", [(F32, B16), *slow(((B16, F32),), ((B16, B16),))], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_of_rounded_operands(name, types, random):
    function, *shapes, axes = PRODUCTS[name]
    lhs, rhs = arrays(random, *shapes, types=types)
    product, pull = jax.vjp(jax.jit(function), lhs, rhs)
    assert product.dtype == F32
    np.testing.assert_allclose(product, np.einsum(axes, wide(lhs), wide(rhs)), rtol=1e-5, atol=1e-5)
    cotangent = jnp.asarray(random.normal(size=product.shape), F32)
    lhs_gradient, rhs_gradient = pull(cotangent)
    assert (lhs_gradient.dtype, rhs_gradient.dtype) == types
    for_left, for_right = gradient_axes(axes)
    for gradient, expected in (
        (lhs_gradient, np.einsum(for_left, wide(cotangent), wide(rhs))),
        (rhs_gradient, np.einsum(for_right, wide(lhs), wide(cotangent))),
    ):
        tolerance = 1e-5 if gradient.dtype == F32 else 2**-8
        np.testing.assert_allclose(gradient.astype(F32), expected, rtol=tolerance, atol=1e-5)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_products_of_float32_are_jax_s_own(name, local, random, monkeypatch):
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: local)  # where axes are merged
    function, *shapes, axes = PRODUCTS[name]
    lhs, rhs = arrays(random, *shapes, types=(F32, F32))
    plain = functools.partial(jnp.einsum, axes)
    cotangent = jnp.asarray(random.normal(size=plain(lhs, rhs).shape), F32)

    @functools.partial(jax.jit, static_argnums=0)
    def all_of(function, lhs, rhs):
        value, pull = jax.vjp(function, lhs, rhs)
        return value, *pull(cotangent)

    for actual, expected in zip(all_of(function, lhs, rhs), all_of(plain, lhs, rhs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5 * local, atol=1e-5 * local)
    # In forward mode too, which products of a narrow type do not have.
    jax.jvp(function, (lhs, rhs), (lhs, rhs))


@pytest.mark.parametrize("shape", [(3, 5, 7, 13), *slow(((8, 9, 64, 130),))])
def test_gradients_of_loops_are_those_of_the_products(shape, random):
    """`gradient` and `both_gradients`, which loops with gradients of their own take."""
    batch, time, size, columns = shape
    inputs, weights = arrays(random, (time, batch, size), (size, columns))
    cotangent = jnp.asarray(random.normal(size=(time, batch, columns)), F32)

    @jax.jit
    def evaluate(inputs, weights, cotangent):
        _, pull = jax.vjp(products.matmul, inputs, weights)
        return products.gradient(inputs, cotangent, weights), pull(cotangent)[1]

    weights_gradient, expected = evaluate(inputs, weights, cotangent)
    assert weights_gradient.dtype == B16
    np.testing.assert_array_equal(weights_gradient, expected)

    @jax.jit
    def evaluate_transposed(flat, rows, cotangent):
        _, pull = jax.vjp(products.matmul_transposed, flat, rows)
        return products.both_gradients(cotangent, flat, rows), pull(cotangent)

    flat, rows = inputs.reshape(-1, size), weights.T
    gradients, expected = evaluate_transposed(flat, rows, cotangent.reshape(-1, columns))
    inputs_gradient, rows_gradient = gradients
    assert inputs_gradient.dtype == rows_gradient.dtype == F32
    np.testing.assert_array_equal(inputs_gradient, expected[0])
    np.testing.assert_array_equal(rows_gradient.astype(B16), expected[1])


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_operands_and_results_may_be_transposed(name, looped, random):
    """XLA refused some of them when they ran: it wrote A^T B^T for (B A)^T too late."""
    function, *shapes, axes = PRODUCTS[name]
    lhs, rhs = arrays(random, *shapes, types=(F32, F32))

    def loss(lhs, rhs):
        value = function(lhs.T, rhs.astype(B16).T)
        return jnp.sin(value).sum(), value.T

    def within(lhs, rhs):
        if not looped:
            return loss(lhs, rhs)
        step = lambda total, x: (total + loss(x, rhs)[0], loss(x, rhs)[1])  # noqa: E731
        return jax.lax.scan(step, 0.0, lhs[None])

    results = jax.jit(jax.value_and_grad(within, argnums=(0, 1), has_aux=True))(lhs.T, rhs.T)
    (_, value), gradients = results
    expected = np.einsum(axes, wide(lhs), wide(rhs)).T
    np.testing.assert_allclose(value.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_biases_are_added_in_float32(random):
    inputs, weights = arrays(random, (3, 5, 7), (7, 13))
    bias = jnp.asarray(random.normal(size=13), F32)
    expected = products.matmul(inputs, weights) + bias[None, None]
    np.testing.assert_array_equal(products.affine(inputs, weights, bias), expected)
    np.testing.assert_array_equal(
        products.affine(inputs, weights, bias.astype(B16)),
        products.matmul(inputs, weights) + bias.astype(B16).astype(F32)[None, None],
    )


@pytest.mark.parametrize("transform", ["vmap", "checkpoint", "shard_map", "automatic mesh", "scan"])
def test_gradients_are_the_same_within_transformations(transform, random):
    inputs, weights = arrays(random, (8, 9, 64), (64, 130))

    def loss(weights, inputs):
        return jnp.sin(products.matmul(inputs, weights)).sum()

    expected = jax.grad(loss, argnums=(0, 1))(weights, inputs)
    mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.sharding.PartitionSpec("rows")

    def within(weights, inputs):
        if transform == "vmap":
            return jax.vmap(loss, in_axes=(None, 0))(weights, inputs).sum()
        if transform == "checkpoint":
            return jax.checkpoint(loss)(weights, inputs)
        if transform == "scan":
            step = lambda total, x: (total + loss(weights, x), None)  # noqa: E731
            return jax.lax.scan(step, 0.0, inputs)[0]
        if transform == "shard_map":
            replicated = jax.sharding.PartitionSpec()
            return jax.shard_map(
                lambda w, x: jax.lax.psum(loss(w, x), "rows"),
                mesh=mesh,
                in_specs=(replicated, rows),
                out_specs=replicated,
            )(weights, inputs)
        return loss(weights, jax.lax.with_sharding_constraint(inputs, sharding))

    sharding = jax.sharding.NamedSharding(mesh, rows)
    gradients = jax.jit(jax.grad(within, argnums=(0, 1)))(weights, inputs)
    # A gradient of bfloat16 weights is rounded for each row where rows are mapped over.
    for actual, desired, tolerance in zip(gradients, expected, (0.02, 1e-5), strict=True):
        actual, desired = actual.astype(F32), desired.astype(F32)
        np.testing.assert_allclose(actual, desired, atol=tolerance * float(jnp.abs(desired).max()))


def test_gradients_of_rows_that_are_looked_up_often_are_summed_in_float32():
    """In bfloat16 the sum of 1,000 ones would be 256."""
    table, ids = jnp.ones((3, 2), B16), jnp.zeros(1000, jnp.int32)
    gradient = jax.grad(lambda table: row_lookup.take(table, ids).astype(F32).sum())(table)
    assert gradient.dtype == B16
    np.testing.assert_array_equal(gradient.astype(F32), [[1000, 1000], [0, 0], [0, 0]])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_products_by_the_transpose_of_small_and_large_matrices(random, dtype, monkeypatch):
    lhs, rhs = random.normal(size=(3, 5)), random.normal(size=(7, 5))
    expected = np.asarray(lhs @ rhs.T)
    for limit in (0, rhs.size):
        monkeypatch.setattr(products, "TRANSPOSED", limit)
        product = products.by_transpose(jnp.asarray(rhs, dtype))(jnp.asarray(lhs, jnp.float32))
        assert product.dtype == jnp.float32
        np.testing.assert_allclose(product, expected, atol=1e-5 if dtype == jnp.float32 else 0.1)


def few_by_many(name, lhs, rhs):
    """lhs @ rhs.T by a function."""
    if name == "matmul":
        return products.matmul(lhs, rhs.T)
    function = {"by_transpose": lambda lhs, rhs: products.by_transpose(rhs)(lhs)}
    return function.get(name, products.matmul_transposed)(lhs, rhs)


@pytest.mark.parametrize("name", ["matmul", "matmul_transposed", "by_transpose"])
@pytest.mark.parametrize(
    "rows, entries, local, as_columns",
    [(6, 35, True, True), (1, 35, True, False), (7, 35, True, False), (3, 36, True, False)]
    + [(3, 35, False, False)],
)
def test_few_rows_by_a_large_matrix_are_multiplied_as_columns(
    name, rows, entries, local, as_columns, random, monkeypatch
):
    """The product and its gradients, by numpy."""
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: local)
    monkeypatch.setattr(products, "TRANSPOSED", 34)
    monkeypatch.setattr(products, "COLUMNS", entries)
    monkeypatch.setattr(products, "MOST_ROWS", 6)
    lhs, rhs, cotangent = (random.normal(size=n) for n in ((rows, 5), (7, 5), (rows, 7)))

    @jax.jit
    def product(lhs, rhs, cotangent):
        value, pull = jax.vjp(functools.partial(few_by_many, name), lhs, rhs)
        return value, *pull(cotangent)

    arrays = [jnp.asarray(array, F32) for array in (lhs, rhs, cotangent)]
    assert ("optimization_barrier" in product.lower(*arrays).as_text()) is as_columns
    expected = lhs @ rhs.T, cotangent @ rhs, cotangent.T @ lhs
    for result, reference in zip(product(*arrays), expected, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [3, 4])
def test_more_rows_are_multiplied_as_columns_if_the_result_is_wider_than_the_sum(
    rows, random, monkeypatch
):
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: True)
    monkeypatch.setattr(products, "COLUMNS", 35)
    monkeypatch.setattr(products, "MOST_ROWS", 6)
    lhs, rhs = random.normal(size=(rows, 7)), random.normal(size=(5, 7))
    product = jax.jit(products.matmul_transposed)
    arrays = jnp.asarray(lhs, F32), jnp.asarray(rhs, F32)
    assert ("optimization_barrier" in product.lower(*arrays).as_text()) is (rows == 3)
    np.testing.assert_allclose(product(*arrays), lhs @ rhs.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "rows, entries, least, as_columns",
    [
        (6, 240, 3, True),
        (3, 120, 3, True),
        (2, 80, 3, False),
        (7, 280, 3, False),
        (6, 241, 3, False),
    ],
)
def test_few_rows_in_a_narrow_type_are_multiplied_as_columns(
    rows, entries, least, as_columns, random, monkeypatch
):
    """The product of rounded operands and its gradients, by numpy: [8, 5] by [5, rows]."""
    monkeypatch.setattr(products, "NARROW_COLUMNS", entries)
    monkeypatch.setattr(products, "LEAST_ROWS", least)
    monkeypatch.setattr(products, "MOST_ROWS", 6)
    lhs, rhs, cotangent = (random.normal(size=n) for n in ((rows, 5), (8, 5), (rows, 8)))
    lhs, rhs, cotangent = (jnp.asarray(array, B16) for array in (lhs, rhs, cotangent))

    @jax.jit
    def product(lhs, rhs, cotangent):
        value, pull = jax.vjp(products.matmul_transposed, lhs, rhs)
        return value, *pull(cotangent.astype(F32))

    text = product.lower(lhs, rhs, cotangent).as_text()
    assert (
        f"(tensor<8x5xbf16>, tensor<{rows}x5xbf16>) -> tensor<8x{rows}xf32>" in text
    ) is as_columns
    lhs, rhs, cotangent = (np.asarray(array, np.float64) for array in (lhs, rhs, cotangent))
    expected = lhs @ rhs.T, cotangent @ rhs, cotangent.T @ lhs
    for result, reference in zip(product(*map(B16, (lhs, rhs, cotangent))), expected, strict=True):
        tolerance = 1e-5 if result.dtype == F32 else 1e-2
        np.testing.assert_allclose(result.astype(F32), reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("steps, copied", [(16, True), (15, False)])
@pytest.mark.parametrize("dtype", [F32, B16])
def test_a_matrix_of_a_long_loop_is_transposed_once_in_a_narrow_type(steps, copied, dtype, random):
    lhs, rhs = random.normal(size=(3, 5)), random.normal(size=(5, 7))

    def times(rhs, lhs):
        return products.by_matrix(rhs, steps)(lhs)

    arrays = jnp.asarray(rhs, dtype), jnp.asarray(lhs, dtype)
    text = str(jax.make_jaxpr(times)(*arrays))
    assert ("transpose[permutation=(1, 0)]" in text) is (copied and dtype == B16)
    rounded = (np.asarray(array, np.float64) for array in arrays)
    expected = np.matmul(*reversed([*rounded]))
    np.testing.assert_allclose(times(*arrays), expected, rtol=1e-5, atol=1e-5)
