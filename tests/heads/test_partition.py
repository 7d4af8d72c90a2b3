"""Parameters say which of their axes are of words, features and hidden states."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from tests import examples
from tests.heads.test_contract import HEADS
from zoo import embeddings, heads, priors
from zoo.arrays.partition import named, on_mesh

# Of axes with names alone: (name of the axis: its size), hidden states of 7 numbers.
SIZES = {
    "softmax": {"words": {13}, "hidden": {7}},
    "log-linear": {"features": {9}, "hidden": {7}},
    # 3 frequent words and 2 clusters; tails of 5 and 5.
    "adaptive": {"words": {5}, "hidden": {7}},
    "hierarchical": {"words": {3}, "hidden": {7}},
    "Huffman": {"words": {12}, "hidden": {7}},
    "mixture": {"words": {13}, "hidden": {7}},
    "corrected letters": {"words": {13}, "hidden": {7}},
}


@pytest.mark.parametrize("name", HEADS)
def test_names_are_of_axes_of_their_sizes(name, lexicon):
    head, sizes = HEADS[name].head, {}
    shapes = jax.eval_shape(lambda: head.init(jax.random.key(0), 7, lexicon))
    partition = head.partition(lexicon)

    def of_array(shape, names):
        assert len(names) == len(shape.shape)
        for axis, size in zip(names, shape.shape, strict=True):
            if axis is not None:
                sizes.setdefault(axis, set()).add(size)

    jax.tree.map(of_array, shapes, partition)  # of one structure
    if name in SIZES:
        assert sizes == SIZES[name]


def test_heads_within_heads():
    old = dataclasses.replace(examples.plain_lexicon(), unknown="word 0")
    inner = heads.Softmax().partition(old)
    assert inner == {
        "weights": PartitionSpec("words", "hidden"),
        "bias": PartitionSpec("words"),
    }
    assert heads.SpreadUnknown(heads.Softmax(), old).partition(old) == inner
    expert = heads.WithExpert(priors.KnowledgeBase("nowhere.tsv"), heads.Softmax())
    assert expert.partition(old) == {
        "head": inner,
        "weights": PartitionSpec("hidden"),
        "bias": PartitionSpec(),
    }


def test_embeddings(lexicon):
    parts = (embeddings.Lookup(3), embeddings.Features(2))
    assert embeddings.Concat(parts).partition(lexicon) == {
        "0": {"table": PartitionSpec("words", "hidden")},
        "1": {"table": PartitionSpec("features", "hidden")},
    }


def test_names_become_axes_of_a_mesh():
    """And parameters that are cut by them give what whole ones give."""
    lexicon, head = examples.plain_lexicon(12), heads.Softmax()
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    specs = on_mesh(head.partition(lexicon), {"words": "model", "features": "model"})
    assert specs == {"weights": PartitionSpec("model", None), "bias": PartitionSpec("model")}
    layout = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    params = head.init(jax.random.key(0), 4, lexicon)
    hidden, targets = jnp.ones((4, 4)), jnp.array([0, 5, 6, 11])
    of_tokens = NamedSharding(mesh, PartitionSpec("data"))

    def loss(params, hidden, targets):
        return head.weighted_loss(params, {}, hidden, targets, jnp.ones(()))

    step = jax.jit(jax.value_and_grad(loss), in_shardings=(layout, of_tokens, of_tokens))
    value, gradient = step(params, hidden, targets)
    expected, whole = jax.value_and_grad(loss)(params, hidden, targets)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for found, wanted in zip(jax.tree.leaves(gradient), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="mesh_axes has 'vocab': axes are called words"):
        on_mesh({}, {"vocab": "model"})
    shape = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    with pytest.raises(ValueError, match=r"bias has the shape \(3, 4\) and the names"):
        named({"bias": shape}, {"bias": ("words",)})
