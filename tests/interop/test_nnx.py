"""NNX modules hand their variables to heads, embeddings and cores, and compute nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from tests.interop.test_linen import HEADS, HIDDEN, SIZE, TARGETS, WEIGHTS, assert_same_trees
from zoo import cores, embeddings, heads
from zoo.interop import nnx as modules


def values(variables):
    """The arrays of an attribute that holds variables."""
    return jax.tree.map(
        lambda variable: variable[...], variables, is_leaf=lambda x: isinstance(x, nnx.Variable)
    )


@pytest.mark.parametrize("name", HEADS)
def test_parameters_are_those_of_init_bit_for_bit(name, lexicon):
    module = modules.Head(HEADS[name], SIZE, lexicon, rngs=nnx.Rngs(0))
    assert_same_trees(values(module.params), HEADS[name].init(nnx.Rngs(0).params(), SIZE, lexicon))
    assert_same_trees(values(module.tables), HEADS[name].tables(lexicon))


def test_a_module_is_its_head(lexicon):
    head, key = HEADS["sampled"], jax.random.key(7)
    module = modules.Head(head, SIZE, lexicon, rngs=nnx.Rngs(0))
    params, tables = values(module.params), head.tables(lexicon)
    arguments = HIDDEN, TARGETS

    def loss(module):
        return module.weighted_loss(*arguments, WEIGHTS, key=key)

    value, gradient = nnx.jit(nnx.value_and_grad(loss))(module)
    expected, expected_gradient = jax.jit(jax.value_and_grad(head.weighted_loss))(
        params, tables, *arguments, WEIGHTS, key=key
    )
    np.testing.assert_array_equal(value, expected)
    # Of the parameters alone: the tables are not trained.
    leaves, expected_leaves = jax.tree.leaves(gradient), jax.tree.leaves(expected_gradient)
    assert len(leaves) == len(expected_leaves)
    assert_same_trees(leaves, expected_leaves)
    log_probs = nnx.jit(lambda module: (module.log_prob(*arguments), module(HIDDEN)))(module)
    expected_log_probs = jax.jit(
        lambda *inputs: (head.log_prob(*inputs, *arguments), head.log_probs(*inputs, HIDDEN))
    )(params, tables)
    assert_same_trees(log_probs, expected_log_probs)


def test_a_stream_gives_noise(lexicon):
    head = HEADS["sampled"]
    module = modules.Head(head, SIZE, lexicon, rngs=nnx.Rngs(0))
    loss = module.loss(HIDDEN, TARGETS, key=nnx.Rngs(noise=5))
    arguments = values(module.params), head.tables(lexicon), HIDDEN, TARGETS
    expected = head.loss(*arguments, key=nnx.Rngs(noise=5).noise())
    np.testing.assert_array_equal(loss, expected)
    with pytest.raises(ValueError, match="give it a key"):
        module.loss(HIDDEN, TARGETS)


class Tied(nnx.Module):
    def __init__(self, lexicon, rngs, bias=True):
        self.embedding = modules.Embedding(embeddings.Lookup(SIZE), lexicon, rngs=rngs)
        self.core = modules.Core(cores.LSTM(SIZE, dropout=0.5), SIZE, rngs=rngs)
        self.head = modules.Head(heads.Softmax(tied=True, bias=bias), SIZE, lexicon, rngs=rngs)

    def loss(self, words, targets, rngs=None):
        hidden, _ = self.core(self.embedding(words), key=rngs)
        table = self.embedding.tied_weights()
        return self.head.weighted_loss(hidden, targets, jnp.ones(()), tied_weights=table)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
def test_a_tied_model_trains(lexicon, bias):
    model = Tied(lexicon, nnx.Rngs(0), bias)
    assert values(model.head.params).keys() == ({"bias"} if bias else set())
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, rngs):
        loss, gradients = nnx.value_and_grad(Tied.loss)(model, TARGETS, TARGETS, rngs)
        optimizer.update(model, gradients)
        return loss

    rngs = nnx.Rngs(dropout=1)
    losses = [float(step(model, optimizer, rngs)) for _ in range(8)]
    assert losses[-1] < losses[0] - 1
    # Without rngs there is no dropout.
    assert model.loss(TARGETS, TARGETS) == model.loss(TARGETS, TARGETS)
    assert model.loss(TARGETS, TARGETS, rngs) != model.loss(TARGETS, TARGETS, rngs)
    with pytest.raises(TypeError, match="give it as tied_weights="):
        model.head(HIDDEN)


def test_axes_have_the_names_of_the_project(lexicon):
    axes = {"words": "model", "hidden": "data"}
    head = heads.AdaptiveSoftmax(cutoffs=(3, 8))
    module = modules.Head(head, SIZE, lexicon, rngs=nnx.Rngs(0), axes=axes)
    specs = nnx.get_partition_spec(nnx.state(module, nnx.Param))
    assert tuple(specs["params"]["tail_0"].get_value()) == ("model", None)
    assert tuple(specs["params"]["projection_0"].get_value()) == ("data", None)


@pytest.mark.slow
def test_a_mesh_in_context_lays_parameters_out():
    from tests import examples

    lexicon = examples.plain_lexicon(12)
    types = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((4,), ("model",), axis_types=types)
    with jax.set_mesh(mesh):
        module = modules.Head(
            heads.Softmax(), SIZE, lexicon, rngs=nnx.Rngs(0), axes={"words": "model"}
        )
        weights = module.params["weights"][...]
    assert weights.sharding.spec == jax.sharding.PartitionSpec("model", None)
    expected = heads.Softmax().init(nnx.Rngs(0).params(), SIZE, lexicon)["weights"]
    np.testing.assert_array_equal(weights, expected)


@pytest.mark.slow
def test_types_can_be_chosen(lexicon):
    half = jnp.bfloat16
    options = {"rngs": nnx.Rngs(0), "dtype": half, "param_dtype": half}
    module = modules.Head(heads.Softmax(), SIZE, lexicon, **options)
    params = heads.Softmax().init(nnx.Rngs(0).params(), SIZE, lexicon)
    params = jax.tree.map(lambda x: x.astype(half), params)
    assert_same_trees(values(module.params), params)
    expected = heads.Softmax().log_probs(params, {}, HIDDEN.astype(half))
    np.testing.assert_array_equal(module(HIDDEN), expected)
