"""Programs of cores, embeddings, attention and backgrounds, exported for any batch and length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from tests import examples
from tests.layers.test_every_core import CORES, DROPPING_CORES, INPUT_SIZE
from tests.layers.test_every_embedding import EMBEDDINGS
from zoo.attention import Bahdanau, Luong

SIZES = {"batch": 5, "time": 2, "source": 3}
SYMBOLS = dict(zip(SIZES, export.symbolic_shape("batch, time, source"), strict=True))


def check(function, arguments, axes):
    """That function(*arguments), exported for any sizes of some axes, gives what it gives.

    Args:
      axes: of each argument the names of its first axes.
    """

    def any_size(tree, names):
        sizes = tuple(SYMBOLS[name] for name in names)
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((*sizes, *x.shape[len(sizes) :]), x.dtype), tree
        )

    like = [any_size(tree, names) for tree, names in zip(arguments, axes, strict=True)]
    exported = export.export(jax.jit(function))(*like).call(*arguments)
    expected = jax.jit(function)(*arguments)
    assert jax.tree.structure(exported) == jax.tree.structure(expected)
    for exported_leaf, expected_leaf in zip(
        jax.tree.leaves(exported), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(exported_leaf, expected_leaf, rtol=1e-5, atol=1e-6)


def apply_core(core):
    """Hidden states, carry and gradients, of (params, inputs, carry, reset, key)."""

    def function(params, inputs, carry, reset, key):
        def squares(params, inputs, carry):
            # A decoder begins with a carry of its own, a window of a text with one that is handed.
            begun, _ = core.apply(params, inputs, core.initial_carry(inputs.shape[0]), key=key)
            hidden, after = core.apply(params, inputs, carry, reset=reset)
            return (begun**2).sum() + (hidden**2).sum(), (hidden, after)

        return jax.grad(squares, argnums=(0, 1, 2), has_aux=True)(params, inputs, carry)

    return function


ALL_CORES = {**CORES, **{f"{name}, dropping": core for name, core in DROPPING_CORES.items()}}
CHEAP = {"lstm"}


@pytest.mark.parametrize(
    "name", [n if n in CHEAP else pytest.param(n, marks=pytest.mark.slow) for n in ALL_CORES]
)
def test_cores(name, random):
    core = ALL_CORES[name]
    batch, time = SIZES["batch"], SIZES["time"]
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    inputs = jnp.asarray(random.normal(size=(batch, time, INPUT_SIZE)), jnp.float32)
    carry = examples.randomised(core.initial_carry(batch), random)
    reset = jnp.asarray(random.uniform(size=(batch, time)) < 0.3)
    places = ("batch", "time")
    axes = (), places, ("batch",), places, ()
    check(apply_core(core), (params, inputs, carry, reset, jax.random.key(0)), axes)


@pytest.mark.parametrize("name", EMBEDDINGS)
@pytest.mark.slow
def test_embeddings(name, lexicon, random):
    embedding = EMBEDDINGS[name].embedding
    params, tables = examples.random_params(embedding, random, lexicon), embedding.tables(lexicon)
    words = jnp.asarray(random.integers(0, 13, (SIZES["batch"], SIZES["time"])), jnp.int32)

    def function(params, tables, words):
        vectors, back = jax.vjp(lambda params: embedding.apply(params, tables, words), params)
        return vectors, back(jnp.cos(vectors))

    check(function, (params, tables, words), ((), (), ("batch", "time")))


@pytest.mark.parametrize("component", [Luong(size=9), Bahdanau(units=8)])
@pytest.mark.slow
def test_attention(component, random):
    batch, time, source = SIZES.values()
    params = examples.random_params(component, random, 7, 6, scale=0.6)
    hidden = jnp.asarray(random.normal(size=(batch, time, 7)))
    memory = jnp.asarray(random.normal(size=(batch, source, 6)))
    mask = jnp.asarray(random.uniform(size=(batch, source)) < 0.7)

    def function(params, hidden, memory, mask):
        def squares(params, hidden, memory):
            prepared = component.prepared(params, memory, mask)
            states, weights = component.apply(params, hidden, memory, mask, prepared=prepared)
            return (states**2).sum() + (weights**2).sum(), (states, weights)

        return jax.grad(squares, argnums=(0, 1, 2), has_aux=True)(params, hidden, memory)

    axes = (), ("batch", "time"), ("batch", "source"), ("batch", "source")
    check(function, (params, hidden, memory, mask), axes)
    with pytest.raises(ValueError, match="give K rows for each row of"):
        component.apply(params, hidden[:4], memory, mask)
