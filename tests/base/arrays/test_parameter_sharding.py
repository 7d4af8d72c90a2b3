"""Parameters say which of their axes are of words, features and hidden states."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from tests import examples
from tests.heads.test_every_head import HEADS
from tests.marks import slow
from zoo import heads, priors
from zoo.base.arrays.parameter_sharding import partition_specs
from zoo.heads import on_mesh

# Of axes with names alone: (name of the axis: its size), hidden states of 7 numbers.
SIZES = {
    "softmax": {"words": {13}, "hidden": {7}},
    "log-linear": {"features": {9}, "hidden": {7}},
    # 3 frequent words and 2 clusters; tails of 5 and 5.
    "adaptive": {"words": {5}, "hidden": {7}, "vector": {3, 1}},
    "hierarchical": {"words": {3}, "hidden": {7}},
    "Huffman": {"words": {12}, "hidden": {7}},
    "mixture": {"words": {13}, "hidden": {7}, "vector": {7}},
    "corrected letters": {"words": {13}, "hidden": {7}, "vector": {2}},
}


@pytest.mark.parametrize("name", HEADS)
def test_names_are_of_axes_of_their_sizes(name, lexicon):
    head, sizes = HEADS[name].head, {}
    shapes = jax.eval_shape(lambda: head.init(jax.random.key(0), 7, lexicon))
    partition = head.partition(lexicon)

    def axis_names(shape, names):
        assert len(names) == len(shape.shape)
        for axis, size in zip(names, shape.shape, strict=True):
            if axis is not None:
                sizes.setdefault(axis, set()).add(size)

    jax.tree.map(axis_names, shapes, partition)  # of one structure
    if name in SIZES:
        assert sizes == SIZES[name]


def test_heads_within_heads():
    lexicon_before = dataclasses.replace(examples.plain_lexicon(), unknown="word 0")
    inner = heads.Softmax().partition(lexicon_before)
    assert inner == {
        "weights": PartitionSpec("words", "hidden"),
        "bias": PartitionSpec("words"),
    }
    spread = heads.SpreadUnknown(heads.Softmax(), lexicon_before)
    assert spread.partition(lexicon_before) == {"head": inner}
    expert = heads.WithExpert(priors.KnowledgeBase("nowhere.tsv"), heads.Softmax())
    assert expert.partition(lexicon_before) == {
        "head": inner,
        "weights": PartitionSpec("hidden"),
        "bias": PartitionSpec(),
    }


def _mesh(data, model):
    return jax.make_mesh((data, model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


@pytest.mark.parametrize(
    ("words", "size", "model", "cut", "not_by_rows"),
    [
        (12, 4, 2, [("model",), ("model",)], []),
        (
            13,
            4,
            2,
            [(), (None, "model")],
            ["bias [13], whole on every device", "weights [13, 4], cut by columns"],
        ),
        (
            13,
            5,
            4,
            [(), ()],
            ["bias [13], whole on every device", "weights [13, 5], whole on every device"],
        ),
    ],
)
def test_what_divides_is_cut_and_the_rest_is_named(words, size, model, cut, not_by_rows):
    """And parameters that lie so give what whole ones give."""
    lexicon, head, mesh = examples.plain_lexicon(words), heads.Softmax(), _mesh(4 // model, model)
    params = head.init(jax.random.key(0), size, lexicon)
    layout = on_mesh(head, params, mesh)
    assert [x.spec for x in jax.tree.leaves(layout.shardings)] == [PartitionSpec(*x) for x in cut]
    assert list(layout.not_by_rows) == not_by_rows
    hidden, targets = jnp.ones((4, size)), jnp.array([0, 5, 6, 11])
    token_sharding = NamedSharding(mesh, PartitionSpec("data"))

    def loss(params, hidden, targets):
        return head.weighted_loss(params, {}, hidden, targets, jnp.ones(()))

    step = jax.jit(
        jax.value_and_grad(loss), in_shardings=(layout.shardings, token_sharding, token_sharding)
    )
    value, gradient = step(params, hidden, targets)
    expected, expected_gradients = jax.jit(jax.value_and_grad(loss))(params, hidden, targets)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for actual, desired in zip(
        jax.tree.leaves(gradient), jax.tree.leaves(expected_gradients), strict=True
    ):
        np.testing.assert_allclose(actual, desired, rtol=1e-5, atol=1e-7)


def test_features_and_heads_within_heads_are_laid_out(lexicon):
    head = heads.LogLinear()
    shapes = jax.eval_shape(lambda: head.init(jax.random.key(0), 7, lexicon))  # 9 features
    layout = on_mesh(head, shapes, jax.make_mesh((4,), ("shards",)), axis="shards")
    assert layout.not_by_rows == (
        "bias [9], whole on every device",
        "weights [9, 7], whole on every device",
    )
    head = heads.WithExpert(priors.KnowledgeBase("nowhere.tsv"), heads.Softmax())
    words = examples.plain_lexicon(8)
    shapes = jax.eval_shape(lambda: head.init(jax.random.key(0), 7, words))
    shardings, not_by_rows = on_mesh(head, shapes, _mesh(1, 4))
    assert shardings["head"]["weights"].spec == PartitionSpec("model")
    assert (shardings["weights"].spec, not_by_rows) == (PartitionSpec(), ())


@pytest.mark.parametrize("name", ["softmax", *slow("corrected letters", "adaptive", "mixture")])
def test_all_tables_are_cut_along_hidden_states_and_vectors(name, lexicon):
    """The layout of fully sharded training, by rules as frameworks have them."""
    head, mesh = HEADS[name].head, jax.make_mesh((2,), ("fsdp",), axis_types=(AxisType.Auto,))
    rules = {"hidden": "fsdp", "vector": "fsdp"}
    params = jax.jit(lambda key: head.init(key, 8, lexicon))(jax.random.key(0))
    shardings = jax.tree.map(
        lambda names: NamedSharding(mesh, PartitionSpec(*map(rules.get, names))),
        head.partition(lexicon),
    )
    trained = {path: x for path, x in params.items() if path != "network"}  # which has no table
    for path, array in trained.items():
        if array.ndim > 1:
            assert "fsdp" in shardings[path].spec, path
    token_sharding = NamedSharding(mesh, PartitionSpec("fsdp"))
    hidden = jax.random.normal(jax.random.key(1), (6, 8))
    targets, tables = jnp.array([0, 4, 12, 9, 10, 6]), head.tables(lexicon)

    def loss(params, hidden, targets):
        return head.weighted_loss(params, tables, hidden, targets, jnp.ones(()))

    step = jax.jit(jax.value_and_grad(loss), out_shardings=(None, shardings))
    placed = jax.device_put((hidden, targets), token_sharding)
    value, gradient = step(jax.device_put(params, shardings), *placed)
    expected, expected_gradients = jax.jit(jax.value_and_grad(loss))(params, hidden, targets)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for actual, desired in zip(
        jax.tree.leaves(gradient), jax.tree.leaves(expected_gradients), strict=True
    ):
        np.testing.assert_allclose(actual, desired, rtol=1e-4, atol=1e-6)


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match=r"mesh has the axes data, model and no 'words'"):
        on_mesh(heads.Softmax(), {}, _mesh(2, 2), axis="words")
    shape = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    with pytest.raises(ValueError, match=r"bias has the shape \(3, 4\) and the axis names"):
        partition_specs({"bias": shape}, {"bias": ("words",)})
