"""Cores have the same gradients on a mesh as on one device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests import layouts
from tests.marks import slow
from zoo.base.arrays import products
from zoo.base.arrays.random_keys import Keys
from zoo.cores import GRU, LSTM, Elman
from zoo.layers import dropout

CORES = LSTM(size=6, projection=3), GRU(size=5)
CORES += tuple(slow(LSTM(size=5, layers=2), LSTM(size=5, peepholes=True), Elman(size=5)))


@pytest.mark.parametrize("dtype", [jnp.float32, *slow(jnp.bfloat16)])
@pytest.mark.parametrize("core", CORES, ids=str)
def test_on_explicit_axes(core, dtype, random):
    params = jax.tree.map(
        lambda x: jnp.asarray(0.3 * random.normal(size=x.shape), dtype),
        core.init(jax.random.key(0), 7),
    )
    inputs = jnp.asarray(random.normal(size=(4, 3, 7)), jnp.float32)

    def loss(params, inputs, carry):
        return (core.apply(params, inputs, carry)[0] ** 2).sum()

    gradients = jax.jit(jax.grad(loss, (0, 1)))
    expected = gradients(params, inputs, core.initial_carry(4))
    mesh = jax.make_mesh((2, 1), ("data", "model"))
    with jax.set_mesh(mesh):
        rows, everywhere = (NamedSharding(mesh, spec) for spec in (P("data"), P()))
        program = layouts.run(
            gradients,
            jax.device_put(params, everywhere),
            jax.device_put(inputs, rows),
            jax.device_put(core.initial_carry(4), rows),
        )
    actual = program.results
    assert program.largest("all-gather", "all-to-all", "collective-permute") == 0
    assert {x.sharding.is_fully_replicated for x in jax.tree.leaves(actual[0])} == {True}
    assert actual[1].sharding.is_equivalent_to(rows, 3)
    tolerance = 1e-5 if dtype == jnp.float32 else 2e-2
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(
            np.asarray(actual_leaf, np.float32),
            np.asarray(expected_leaf, np.float32),
            rtol=tolerance,
            atol=1e-5,
        )


MASKED = {"input_dropout": 0.3, "recurrent_dropout": 0.5, "variational": True}
SHARDED = {
    "rows, explicit": (AxisType.Explicit, P("devices"), P()),
    "rows, automatic": (AxisType.Auto, P("devices"), P()),
    "columns of matrices, automatic": (AxisType.Auto, P(), P(None, "devices")),
}
KINDS = [*slow("rows, automatic"), "rows, explicit", "columns of matrices, automatic"]


@pytest.mark.parametrize("sharding", KINDS)
@pytest.mark.parametrize(
    "core", [LSTM(8, **MASKED), *slow(GRU(8, **MASKED), Elman(8, **MASKED))], ids=str
)
def test_masks_do_not_depend_on_the_devices(core, sharding, random, monkeypatch):
    """Both of the recurrent weights, whose rows are drawn in blocks, and of each batch row."""
    kind, row_spec, matrix_spec = SHARDED[sharding]
    monkeypatch.setattr(products, "TRANSPOSED", 0)  # as large recurrent weights are
    monkeypatch.setattr(dropout, "DRAWN_AT_A_TIME", 40)
    params = core.init(jax.random.key(0), 7)
    inputs = jnp.asarray(random.normal(size=(4, 3, 7)), jnp.float32)
    keys = Keys.from_key(jax.random.key(1), 4)

    @jax.jit
    @jax.value_and_grad
    def loss(params, inputs, carry):
        return (core.apply(params, inputs, carry, key=keys)[0] ** 2).sum()

    carry = core.initial_carry(4)
    expected = loss(params, inputs, carry)
    mesh = jax.make_mesh((2,), ("devices",), axis_types=(kind,))
    rows, matrices, everywhere = (
        NamedSharding(mesh, spec) for spec in (row_spec, matrix_spec, P())
    )
    with jax.set_mesh(mesh):
        actual = loss(
            jax.tree.map(
                lambda x: jax.device_put(x, matrices if x.ndim == 2 else everywhere), params
            ),
            jax.device_put(inputs, rows),
            jax.device_put(carry, rows),
        )
    for actual_leaf, expected_leaf in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
        np.testing.assert_allclose(actual_leaf, expected_leaf, rtol=1e-5, atol=1e-6)
