"""Gradients of cores on a mesh with explicit axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from zoo.cores import GRU, LSTM, Elman

CORES = LSTM(size=5, layers=2), LSTM(size=6, projection=3), GRU(size=5), Elman(size=5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("core", CORES, ids=str)
def test_gradients_are_those_of_one_device(core, dtype, random):
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
        found = gradients(
            jax.device_put(params, everywhere),
            jax.device_put(inputs, rows),
            jax.device_put(core.initial_carry(4), rows),
        )
    assert {x.sharding.is_fully_replicated for x in jax.tree.leaves(found[0])} == {True}
    assert found[1].sharding.is_equivalent_to(rows, 3)
    tolerance = 1e-5 if dtype == jnp.float32 else 2e-2
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(
            np.asarray(one, np.float32), np.asarray(other, np.float32), rtol=tolerance, atol=1e-5
        )
