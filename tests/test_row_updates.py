"""Updates of tables by rows, in a user's own step: in Flax as in the trainer."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests import examples
from zoo import embeddings, heads, optimizers, row_updates
from zoo.errors import UserError
from zoo.interop import linen
from zoo.interop import nnx as modules

LEXICON = examples.plain_lexicon(60)
HEAD, EMBEDDING = heads.ImportanceSampling(samples=5), embeddings.Lookup(7)
NOISE = {"log_q": jnp.float32, "threshold": jnp.float32, "alias": jnp.int32}
RANDOM = np.random.default_rng(3)
BATCHES = [
    (RANDOM.integers(60, size=(3, 5)), RANDOM.integers(60, size=(3, 5)), jax.random.key(step))
    for step in range(4)
]
WEIGHTS = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.float32)


def test_lazy_moments_decay_when_touched_by_hand():
    rule = row_updates.RowAdam(0.9, 0.99, 1e-8)
    table, state = jnp.zeros((3, 1)), rule.init(jnp.zeros((3, 1)))
    first = row_updates.RowGradient(jnp.asarray([1, 3]), jnp.asarray([[2.0], [0.0]]))
    second = row_updates.RowGradient(jnp.asarray([0, 3]), jnp.asarray([[5.0], [0.0]]))
    table, state = rule.update(table, state, first, 0.1, 1)
    table, state = rule.update(table, state, second, 0.1, 2)
    table, state = rule.update(table, state, first, 0.1, 3)
    np.testing.assert_allclose(state[0][1], 0.9 * 0.2 + 0.1 * 2)
    np.testing.assert_allclose(state[1][1], 0.99 * 0.04 + 0.01 * 4, rtol=1e-6)
    mean, square = 0.38 / (1 - 0.9**3), 0.0796 / (1 - 0.99**3)
    np.testing.assert_allclose(table[1], -0.1 - 0.1 * mean / square**0.5, rtol=1e-5)
    np.testing.assert_array_equal(table[2], 0)


def test_rows_of_equal_ids_are_added_up():
    ids = jnp.asarray([7, 2, 7, 0, 2, 7])
    rows = jnp.arange(12.0).reshape(6, 2)
    gradient = jax.jit(row_updates.merge_rows, static_argnums=2)(ids, rows, 9)
    np.testing.assert_array_equal(gradient.ids[:3], [0, 2, 7])
    np.testing.assert_array_equal(gradient.rows, [[6, 7], [10, 12], [14, 17], *[[0, 0]] * 3])
    # The remaining ids are beyond the table; each appears once, in order.
    assert (np.diff(gradient.ids) > 0).all()
    assert gradient.ids[3] >= 9


class LinenModel(nn.Module):
    """A bigram model: the state of a word is a row of a table, and a layer over it."""

    @nn.compact
    def __call__(self, inputs, targets, key):
        hidden = linen.Embedding(EMBEDDING, LEXICON, name="embedding")(inputs)
        head = linen.Head(HEAD, LEXICON, name="head")
        return head.weighted_loss(nn.Dense(7)(hidden), targets, WEIGHTS, key=key)


class NnxModel(nnx.Module):
    def __init__(self, rngs):
        self.embedding = modules.Embedding(EMBEDDING, LEXICON, rngs=rngs)
        self.dense = nnx.Linear(7, 7, rngs=rngs)
        self.head = modules.Head(HEAD, 7, LEXICON, rngs=rngs)

    def __call__(self, inputs, targets, key):
        hidden = self.dense(self.embedding(inputs))
        return self.head.weighted_loss(hidden, targets, WEIGHTS, key=key)


def linen_problem():
    """(objective, parameters, paths of the tables)."""
    model = LinenModel()
    variables = model.init(jax.random.key(1), *BATCHES[0])

    def objective(params, batch):
        return model.apply({"params": params, "tables": variables["tables"]}, *batch), None

    paths = [("embedding", "table"), ("head", "weights"), ("head", "bias")]
    return objective, variables["params"], paths


def nnx_problem():
    graph, params, fixed = nnx.split(NnxModel(nnx.Rngs(1)), nnx.Param, ...)

    def objective(values, batch):
        state = jax.tree.map(lambda x: x, params)
        nnx.replace_by_pure_dict(state, values)
        return nnx.merge(graph, state, fixed)(*batch), None

    parts = ("embedding", "table"), ("head", "weights"), ("head", "bias")
    return objective, nnx.to_pure_dict(params), [(part, "params", name) for part, name in parts]


@pytest.mark.parametrize("make_problem", [linen_problem, nnx_problem])
@pytest.mark.parametrize("recipe", [optimizers.SGD(0.5), optimizers.Adagrad(0.3)], ids=repr)
def test_a_step_of_flax_equals_the_dense_one(make_problem, recipe):
    objective, params, paths = make_problem()
    updates = row_updates.RowUpdates(recipe, paths, clip=0.5)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, number, batch):
        (value, _), gradients = updates.value_and_gradients(objective)(params, batch)
        params, state, norm = updates.update(params, state, number, gradients)
        return params, state, value, norm

    dense = optimizers.build(recipe, 0.5, 1, 1)

    @jax.jit
    def dense_step(params, state, batch):
        (value, _), gradients = jax.value_and_grad(objective, has_aux=True)(params, batch)
        changes, state = dense.update(gradients, state, params)
        return jax.tree.map(jnp.add, params, changes), state, value

    expected = jax.tree.map(jnp.array, params)
    state, dense_state = updates.init(params), dense.init(expected)
    for number, batch in enumerate(BATCHES):
        params, state, value, norm = step(params, state, number, batch)
        expected, dense_state, expected_value = dense_step(expected, dense_state, batch)
        np.testing.assert_allclose(value, expected_value, rtol=1e-5)
        assert norm > 0.5  # clipped
    for leaf, expected_leaf in zip(*map(jax.tree.leaves, (params, expected)), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-4, atol=2e-6)


def test_memory_of_a_step_does_not_grow_with_the_vocabulary():
    """But for parameters and state, which are updated in place."""
    words, size = 200_000, 16
    updates = row_updates.RowUpdates(optimizers.Adam(0.1), [("weights",), ("bias",)])
    tables = jax.eval_shape(lambda: {name: jnp.zeros(words, kind) for name, kind in NOISE.items()})
    params = jax.eval_shape(lambda: {"weights": jnp.zeros((words, size)), "bias": jnp.zeros(words)})

    def step(params, state, tables, hidden, targets, key):
        def objective(params, batch):
            return HEAD.weighted_loss(params, tables, *batch, jnp.ones(30), key=key), None

        _, gradients = updates.value_and_gradients(objective)(params, (hidden, targets))
        return updates.update(params, state, 0, gradients)

    arguments = params, jax.eval_shape(updates.init, params), tables
    batch = jnp.zeros((30, size)), jnp.zeros(30, int), jax.random.key(0)
    compiled = jax.jit(step, donate_argnums=(0, 1)).lower(*arguments, *batch).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * words * size / 20


def test_an_optimiser_without_a_rule_for_rows_is_refused():
    with pytest.raises(UserError, match="RowUpdates cannot update rows by RMSProp"):
        row_updates.RowUpdates(optimizers.RMSProp(), [("weights",)])
