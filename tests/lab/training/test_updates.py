"""Row-sparse steps: the dense optimisers' numbers, from the rows alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.lab.training import small
from zoo import optimizers, row_updates
from zoo.base.arrays.row_lookup import Watched, take
from zoo.cores import LSTM
from zoo.embeddings import Concat, Lookup
from zoo.experiment import Training
from zoo.heads import (
    NCE,
    BlackOut,
    CNNSoftmax,
    HierarchicalSoftmax,
    HuffmanSoftmax,
    ImportanceSampling,
    Softmax,
    UnigramNoise,
)
from zoo.lab.training import step, updates
from zoo.lab.training.step import Batch
from zoo.lab.training.tasks import Words, words_loss
from zoo.lab.training.updates import Updates, choose_updates
from zoo.layers.char_convolution import Convolution
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Adagrad, Adam, RMSProp

LEXICON = examples.plain_lexicon()
HEADS = {
    "NCE": NCE(samples=6, noise=UnigramNoise()),
    "importance sampling": ImportanceSampling(samples=6),
    "tied": ImportanceSampling(samples=6, tied=True),
    "words for each token": BlackOut(samples=3, noise_per="token"),
    "words for each batch row": NCE(samples=3, noise_per="row"),
    "hierarchical": HierarchicalSoftmax(),
    "Huffman": HuffmanSoftmax(),
    "corrections": CNNSoftmax(
        Convolution(letter_size=2, widths=(2,)), correction=3, sampled=NCE(samples=6)
    ),
}
INPUTS = Words(
    words=np.array([[0, 3, 1], [4, 4, 0]], np.int32),
    targets=np.array([[3, 1, 2], [4, 0, 7]], np.int32),
    reset=np.zeros((2, 3), bool),
)
WEIGHTS = np.array([[1, 1, 1], [1, 1, 0]], np.float32)
BATCH = Batch(INPUTS, WEIGHTS, np.arange(2, dtype=np.int32))


def trained(model, recipe, sparse, steps=3, clip=0.05, usual_length=3):
    """(parameters after some steps, their metrics, the parameters before)."""
    params = examples.random_params(model, np.random.default_rng(0), LEXICON, scale=0.5)
    if sparse:
        paths = model.row_tables(params)
        optimizer = updates.RowSparseUpdates(recipe, clip, paths, 5, 20)
    else:
        optimizer = Updates(optimizers.build(recipe, clip, 5, 20))
    state = step.TrainState(
        params,
        optimizer.init(params),
        model.core.initial_carry(2),
        jnp.zeros((), jnp.int32),
    )
    tables, key = model.tables(LEXICON), jax.random.key_data(jax.random.key(5))
    loss = functools.partial(words_loss, model)
    options = {"loss": loss, "optimizer": optimizer, "usual_length": usual_length}
    compiled = jax.jit(lambda state: step.train_step(state, tables, BATCH, key, **options))
    metrics = []
    for _ in range(steps):
        state, results = compiled(state)
        metrics.append(results)
    return state.params, metrics, params


# Which rows a head reads and what becomes of them are two things: not every head with both.
CASES = [(name, SGD(0.7)) for name in HEADS]
CASES += [(name, Adagrad(0.3)) for name in ("tied", "words for each batch row", "hierarchical")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "recipe"), CASES, ids=[f"{name}, {type(recipe).__name__}" for name, recipe in CASES]
)
def test_equal_to_the_dense_optimiser_with_clipping(name, recipe):
    model = LanguageModel(Lookup(5), LSTM(5), HEADS[name])
    params, found_metrics, before = trained(model, recipe, sparse=True)
    expected, expected_metrics, _ = trained(model, recipe, sparse=False)
    assert jax.tree.structure(params) == jax.tree.structure(expected)
    for leaf, expected_leaf in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-4, atol=2e-6)
    changes = jax.tree.map(
        lambda before_leaf, after_leaf: np.abs(before_leaf - after_leaf).max(), before, params
    )
    assert min(jax.tree.leaves(changes)) > 1e-4
    for leaf, expected_leaf in zip(found_metrics, expected_metrics, strict=True):
        assert leaf.gradient_norm > 0.05  # clipped
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-4)


@pytest.mark.slow
def test_tables_within_an_embedding_of_parts_are_sparse_too():
    model = LanguageModel(Concat((Lookup(2), Lookup(3))), LSTM(5), NCE(samples=6))
    params, _, before = trained(model, Adagrad(0.3), sparse=True)
    assert model.row_tables(before)[:2] == [
        ("embedding", "0", "table"),
        ("embedding", "1", "table"),
    ]
    expected, _, _ = trained(model, Adagrad(0.3), sparse=False)
    assert jax.tree.structure(params) == jax.tree.structure(expected)
    for leaf, expected_leaf in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-4, atol=2e-6)


@pytest.mark.slow
def test_the_sums_of_adagrad_start_anew_where_the_dense_ones_do():
    """Epochs of 5 steps: before step 5 and 10, and not before 15."""
    model = LanguageModel(Lookup(5), LSTM(5), ImportanceSampling(samples=2))
    resetting = Adagrad(0.3, initial_accumulator=1e-3, reset_every=1, resets=2)
    params, _, _ = trained(model, resetting, sparse=True, steps=17)
    expected, _, _ = trained(model, resetting, sparse=False, steps=17)
    for leaf, expected_leaf in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-3, atol=1e-4)
    once, _, _ = trained(
        model, Adagrad(0.3, initial_accumulator=1e-3, reset_every=1, resets=1), True, steps=17
    )
    apart = jax.tree.map(
        lambda leaf, expected_leaf: np.abs(leaf - expected_leaf).max(), once, expected
    )
    assert max(jax.tree.leaves(apart)) > 0.05


def test_the_rate_of_rows_follows_the_length_of_the_window():
    """Windows of 3 positions where 6 are usual have half the rate, after clipping."""
    model = LanguageModel(Lookup(5), LSTM(5), ImportanceSampling(samples=6))
    full_rate, _, before = trained(model, SGD(0.7), sparse=True, steps=1)
    half, _, _ = trained(model, SGD(0.7), sparse=True, steps=1, usual_length=6)
    for start, full_leaf, half_leaf in zip(
        *map(jax.tree.leaves, (before, full_rate, half)), strict=True
    ):
        np.testing.assert_allclose(half_leaf - start, (full_leaf - start) / 2, rtol=1e-4, atol=1e-7)


def test_rows_that_are_not_touched_stay(random):
    # More than one noise word: one that is the target leaves nothing to learn.
    model = LanguageModel(Lookup(5), LSTM(5), ImportanceSampling(samples=6))
    params, _, before = trained(model, Adam(0.1), sparse=True, steps=1)
    old_table, new_table = before["embedding"]["table"], params["embedding"]["table"]
    changed_rows = np.flatnonzero(np.abs(old_table - new_table).max(1) > 0)
    assert changed_rows.tolist() == [0, 1, 3, 4]  # the words that are read


def test_the_first_lazy_adam_step_is_adam_s_on_the_touched_rows():
    model = LanguageModel(Lookup(5), LSTM(5), ImportanceSampling(samples=6))
    params, _, _ = trained(model, Adam(0.1), sparse=True, steps=1)
    expected, _, _ = trained(model, Adam(0.1), sparse=False, steps=1)
    for leaf, expected_leaf in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-3, atol=1e-4)


def test_a_watched_table_notes_what_is_read_and_hands_out_offsets():
    table = jnp.arange(6.0).reshape(3, 2)
    watched = Watched(table, [jnp.ones((2, 2)), jnp.zeros((1, 2))])
    np.testing.assert_array_equal(take(watched, jnp.asarray([2, 0])), [[5, 6], [1, 2]])
    np.testing.assert_array_equal(take(watched, jnp.asarray([1])), [[2, 3]])
    assert [ids.tolist() for ids in watched.ids] == [[2, 0], [1]]
    assert (watched.shape, watched.dtype) == (table.shape, table.dtype)
    np.testing.assert_array_equal(take(table, jnp.asarray([1])), [[2, 3]])


def test_a_head_that_reads_the_whole_tied_table_leaves_nothing_sparse():
    model = LanguageModel(Lookup(5), LSTM(5), Softmax(tied=True))
    assert model.row_tables(model.init(jax.random.key(0), LEXICON)) == []
    model = LanguageModel(Lookup(5), LSTM(5), Softmax())
    params = model.init(jax.random.key(0), LEXICON)
    assert model.row_tables(params) == [("embedding", "table")]


TABLES = [("embedding", "table"), ("head", "weights"), ("head", "bias")]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, TABLES),
        ({"optimizer": Adagrad()}, TABLES),
        ({"frozen": ("embedding",)}, TABLES[1:]),
        ({"row_sparse": False}, []),
        ({"optimizer": SGD(momentum=0.9)}, []),
        ({"optimizer": Adam()}, []),  # lazy Adam is not Adam
        ({"optimizer": RMSProp()}, []),
        ({"accumulate": 2}, []),
        ({"average": 0.9}, []),
        ({"length": 6}, []),  # four rows a token would be 72 rows
        ({"length": 6, "row_sparse": True}, TABLES),
    ],
)
def test_rows_alone_are_updated_where_that_is_exact_and_faster(settings, expected):
    lexicon = examples.plain_lexicon(60)
    model = LanguageModel(Lookup(5), LSTM(5), NCE(samples=6))
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), lexicon))
    recipe = Training(**{"batch": 3, "length": 5, "optimizer": SGD()} | settings)
    updates = choose_updates(recipe, params, model.row_tables(params), 5, 20)
    assert getattr(updates, "paths", []) == expected


def test_small_tables_are_updated_as_a_whole():
    model = LanguageModel(Concat((Lookup(5), Lookup(5))), LSTM(5), Softmax())
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), examples.plain_lexicon(60)))
    params["embedding"]["0"]["table"] = jax.ShapeDtypeStruct((59, 5), jnp.float32)
    recipe = Training(batch=3, length=5, optimizer=SGD())
    updates = choose_updates(recipe, params, model.row_tables(params), 5, 20)
    assert updates.paths == [("embedding", "1", "table")]


@pytest.fixture
def rows_of_any_table(monkeypatch):
    """Tables of tests are small."""
    monkeypatch.setattr("zoo.lab.training.updates.ROWS_PER_TOKEN", 0)


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(
    ("head", "settings"),
    [
        (NCE(samples=5), {"optimizer": Adagrad(0.3)}),
        (ImportanceSampling(samples=5, tied=True), {}),
        (NCE(samples=5), {"frozen": ("embedding",)}),
    ],
    ids=["Adagrad", "tied", "frozen"],
)
@pytest.mark.slow
def test_the_default_equals_dense_updates(tmp_path, rows_of_any_table, devices, head, settings):
    model = dataclasses.replace(small.MODEL, head=head, core=LSTM(size=6))
    recipe = small.experiment(model, clip=0.1, **settings)
    dense = dataclasses.replace(recipe.training, row_sparse=False)
    dense = small.trainer(dataclasses.replace(recipe, training=dense), tmp_path / "dense")
    by_rows = small.trainer(recipe, tmp_path / "rows", devices)
    assert type(dense.optimizer) is updates.Updates
    assert isinstance(by_rows.optimizer, updates.RowSparseUpdates)
    dense.train()
    by_rows.train()
    assert dense.task.epoch_steps > 2
    expected, params = (small.last_state(trainer)[1].params for trainer in (dense, by_rows))
    for leaf, expected_leaf in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-4, atol=5e-6)


@pytest.mark.slow
def test_the_norm_is_that_of_everything_together():
    recipe = updates.RowSparseUpdates(SGD(1.0), 1.0, [("embedding", "table")], 5, 20)
    params = {"embedding": {"table": jnp.zeros((4, 1))}, "core": {"w": jnp.zeros(1)}}
    gradient = row_updates.RowGradient(jnp.asarray([2, 4]), jnp.asarray([[3.0], [0.0]]))
    dense = {"embedding": {}, "core": {"w": jnp.asarray([4.0])}}
    new_params, _, norm = recipe.update(
        params,
        recipe.init(params),
        jnp.zeros((), jnp.int32),
        row_updates.SparseGradients(dense, {("embedding", "table"): gradient}),
    )
    np.testing.assert_allclose(norm, 5)
    np.testing.assert_allclose(new_params["embedding"]["table"][:, 0], [0, 0, -0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(new_params["core"]["w"], [-0.8], rtol=1e-6)
