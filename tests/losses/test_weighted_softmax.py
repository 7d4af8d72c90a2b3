"""The weighted sum of softmax losses and its gradients, in each form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import references
from tests.losses.test_softmax import assert_all_close, problem, weighted
from zoo.base.arrays import sharded_functions
from zoo.losses import softmax, weighted_softmax
from zoo.losses.shaping import Shaping
from zoo.losses.weighted_softmax import weighted_softmax_loss


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("block", [1, 3, 7, 10])
def test_weighted_loss_and_gradients(random, block):
    arguments = problem(random)
    token_weights = np.array([0.3, 0, 1, 2, 0, 0.7, 0.1])
    value, gradients = weighted(block, factor=3.0)(*arguments, token_weights)
    loss, _ = references.softmax_loss(*arguments)
    np.testing.assert_allclose(value, 3 * loss @ token_weights, rtol=1e-12)
    expected = references.softmax_gradients(*arguments, 3 * token_weights, np.zeros(7))
    assert_all_close(gradients, expected, rtol=1e-9, atol=1e-12)


@pytest.fixture(params=[(13, 4), (12, 4), (13, 1)], ids=str)
def words_in_blocks(request, monkeypatch):
    """The number of words, in blocks of a few, which divide them, overlap, or are single words."""
    words, rows = request.param
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: True)
    monkeypatch.setattr(weighted_softmax, "ENTRIES_AT_A_TIME", rows * 5)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    return words


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("shape", [{}, {"label_smoothing": 0.2}, {"soft_cap": 1.5, "penalty": 0.3}])
def test_weighted_loss_by_blocks_of_words(random, words_in_blocks, shape):
    hidden, weights, bias, targets = arguments = problem(random, words_in_blocks)
    token_weights = np.array([0.3, 0, 1, 2, 0, 0.7, 0.1])
    shaping = Shaping.from_options(shape.get("soft_cap"), 0.7)
    options = softmax.TermOptions(shape.get("label_smoothing", 0.0))

    def objective(*arguments):
        return weighted_softmax_loss(*arguments, token_weights, 3, temperature=0.7, **shape)

    def by_definition(*table):
        loss, log_z, *_ = softmax.plain_terms(options, table, targets, shaping)
        return token_weights @ (loss + shape.get("penalty", 0.0) * log_z**2)

    value, gradients = jax.jit(jax.value_and_grad(objective, (0, 1, 2)))(*arguments)
    expected, expected_gradients = jax.value_and_grad(by_definition, (0, 1, 2))(*arguments[:3])
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert_all_close(gradients, expected_gradients, rtol=1e-9, atol=1e-12)
    if not shape:
        by_hand, _ = references.softmax_loss(hidden / 0.7, weights, bias / 0.7, targets)
        np.testing.assert_allclose(value, by_hand @ token_weights, rtol=1e-12)


@pytest.mark.parametrize("place", ["jit", "pmap", "shard_map"])
def test_only_where_arrays_are_on_one_device_logits_are_held_above_a_size(place, monkeypatch):
    """Elsewhere devices would send the gradient of W for each block of tokens."""
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 10)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    shapes = (4, 8, 9), (5, 9), (5,)
    hidden, weights, bias = (jnp.ones(shape) for shape in shapes)

    def loss(hidden):
        arguments = weights, bias, jnp.zeros(8, int), jnp.ones(8)
        return weighted_softmax_loss(hidden.reshape(8, 9), *arguments)[None]

    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("data")
    function, arguments = {
        "jit": (jax.jit(loss), hidden[0]),
        "pmap": (jax.pmap(loss), hidden),
        "shard_map": (jax.shard_map(loss, mesh=mesh, in_specs=spec, out_specs=spec), hidden),
    }[place]
    program = str(jax.make_jaxpr(jax.grad(lambda x: function(x).sum()))(arguments))
    assert ("f32[8,5]" in program) == (place != "jit")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_blocks_of_words_change_no_more_than_rounding(random, words_in_blocks, dtype, monkeypatch):
    arguments = [jnp.asarray(x, dtype) for x in problem(random, words_in_blocks)[:3]]
    batch = *arguments, random.integers(words_in_blocks, size=7), np.array([1, 0, 2, 0.5, 0, 3, 1])
    batch = batch[0].at[jnp.array([1, 4])].set(jnp.nan), *batch[1:]  # padding may hold anything

    def loss_and_gradients(*batch):
        return jax.value_and_grad(weighted_softmax_loss, (0, 1, 2))(*batch)

    actual = jax.jit(loss_and_gradients)(*batch)
    monkeypatch.setattr(weighted_softmax, "ENTRIES_AT_A_TIME", 10**6)
    expected = jax.jit(lambda *batch: loss_and_gradients(*batch))(*batch)
    step = {"float32": 1e-6, "bfloat16": 2**-7}[dtype]
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        assert actual_leaf.dtype == expected_leaf.dtype
        actual_leaf, expected_leaf = np.float64(actual_leaf), np.float64(expected_leaf)
        np.testing.assert_allclose(
            actual_leaf, expected_leaf, rtol=step, atol=step * np.abs(expected_leaf).max()
        )


@pytest.mark.parametrize("local", [True, False])
def test_the_weighted_loss_takes_a_tenth_of_the_memory_of_all_logits(local, monkeypatch):
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: local)
    tokens, size, words = 4096, 64, 40_000
    shapes = [(tokens, size), (words, size), (words,)]
    floats = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    integers = jax.ShapeDtypeStruct((tokens,), jnp.int32)

    def plain(*arguments):
        *table, targets = arguments
        return softmax.plain_terms(softmax.TermOptions(), table, targets).loss.mean()

    def fused(*arguments):
        return weighted_softmax_loss(*arguments, jnp.full(tokens, 1 / tokens))

    memory_bytes = [
        jax.jit(jax.value_and_grad(function, (0, 1, 2)))
        .lower(*floats, integers)
        .compile()
        .memory_analysis()
        .temp_size_in_bytes
        for function in (fused, plain)
    ]
    assert memory_bytes[0] < memory_bytes[1] / 10
    # The logits of a block are not larger than the gradient of W, beside some megabytes.
    assert memory_bytes[0] < 4 * words * size + 4 * softmax.LOGITS_AT_A_TIME


@pytest.mark.usefixtures("float64")
def test_weighted_loss_without_gradients(random):
    arguments, token_weights = problem(random), random.uniform(size=7)
    value = jax.jit(weighted_softmax_loss, static_argnums=5)(*arguments, token_weights, 3)
    loss, _ = references.softmax_loss(*arguments)
    np.testing.assert_allclose(value, loss @ token_weights, rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_weighted_loss_of_small_logits_over_an_odd_vocabulary(random):
    arguments = problem(random, words=2049, scale=0.01)
    value, _ = weighted(3)(*arguments, np.ones(7))
    np.testing.assert_allclose(value, references.softmax_loss(*arguments)[0].sum(), rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_losses_of_any_leading_axes_choose_their_blocks(random, monkeypatch):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 6 * 150)
    assert softmax.vocabulary_block(6, 2049, 256) == 150
    hidden, weights, bias, targets = problem(random, words=2049, tokens=6)
    expected_loss, expected_log_z = references.softmax_loss(hidden, weights, bias, targets)
    hidden, targets = hidden.reshape(2, 3, 5), targets.reshape(2, 3)
    loss, log_z = jax.jit(softmax.softmax_loss)(hidden, weights, bias, targets)
    np.testing.assert_allclose(loss, expected_loss.reshape(2, 3), rtol=1e-11)
    np.testing.assert_allclose(log_z, expected_log_z.reshape(2, 3), rtol=1e-11)
    token_weights = np.arange(6.0).reshape(2, 3)
    total = jax.jit(weighted_softmax_loss)(hidden, weights, bias, targets, token_weights)
    np.testing.assert_allclose(total, expected_loss @ np.arange(6), rtol=1e-11)
    # Blocks of tokens this small are not worth it; with this constant they are.
    monkeypatch.setattr(weighted_softmax, "LEAST_SENT_AT_A_TIME", 1)
    total = weighted_softmax_loss(hidden, weights, bias, targets, token_weights)
    np.testing.assert_allclose(total, expected_loss @ np.arange(6), rtol=1e-11)


# As many as the words allow, or a number of tokens, which is at most the columns of W, or more of
# a narrow table.
@pytest.mark.parametrize(
    ("minimum", "narrow", "tokens"), [(1, 1, 2), (4, 1, 4), (280, 1, 8), (280, 20, 20)]
)
def test_weighted_losses_hold_some_tokens_at_a_time(monkeypatch, minimum, narrow, tokens):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 10)
    monkeypatch.setattr(weighted_softmax, "LEAST_OF_NARROW", narrow)
    monkeypatch.setattr(weighted_softmax, "LEAST_TOKENS_AT_A_TIME", minimum)
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: True)
    weights, bias, targets = jnp.ones((5, 9)), jnp.ones(5), jnp.zeros(40, int)

    def loss(hidden):
        return weighted_softmax_loss(hidden, weights, bias, targets, jnp.ones(40))

    program = str(jax.make_jaxpr(loss)(jnp.ones((40, 9))))
    # W, transposed, has nine rows.
    assert {n for n in {*range(1, 41)} - {9} if f"f32[{n},5]" in program} == {tokens}


@pytest.mark.usefixtures("float64")
def test_weighted_loss_with_words_without_mass(random):
    """A target without mass costs infinitely much, unless the token has no weight."""
    hidden, weights, bias, targets = problem(random)
    bias[3:9] = -np.inf
    targets[:] = [0, 1, 2, 9, 10, 11, 5]
    token_weights = np.array([1.0, 2, 0.5, 1, 1, 1, 0])
    function = weighted(3)
    value, gradients = function(hidden, weights, bias, targets, token_weights)
    possible = hidden[:6], weights, bias, targets[:6]
    loss, _ = references.softmax_loss(*possible)
    np.testing.assert_allclose(value, loss @ token_weights[:6], rtol=1e-12)
    expected = references.softmax_gradients(*possible, token_weights[:6], np.zeros(6))
    np.testing.assert_allclose(gradients[0][:6], expected[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(gradients[0][6], 0)
    assert_all_close(gradients[1:], expected[1:], rtol=1e-9, atol=1e-12)
    assert np.isinf(function(hidden, weights, bias, targets, np.ones(7))[0])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("measured", [True, False])
def test_a_token_without_weight_gives_no_nan(random, measured):
    """Neither the sum nor a gradient is NaN, whether all its words are massless or overflow."""
    hidden, weights, bias, targets = problem(random)
    token_weights = np.ones(7)
    token_weights[4] = 0
    log_masses = jnp.zeros((7, len(bias)))
    options = {}
    if measured:
        log_measure = jax.tree_util.Partial(lambda contexts: contexts)
        options = {"log_measure": log_measure, "contexts": log_masses.at[4].set(-jnp.inf)}
    else:
        hidden[4] = 1e308

    def summed(hidden, weights, bias):
        return weighted_softmax_loss(hidden, weights, bias, targets, token_weights, 3, **options)

    value, gradients = jax.jit(jax.value_and_grad(summed, (0, 1, 2)))(hidden, weights, bias)
    is_present = np.arange(7) != 4
    columns = hidden[is_present], weights, bias, targets[is_present]
    np.testing.assert_allclose(value, references.softmax_loss(*columns)[0].sum(), rtol=1e-12)
    expected = references.softmax_gradients(*columns, np.ones(6), np.zeros(6))
    np.testing.assert_array_equal(gradients[0][4], 0)
    present_gradients = gradients[0][is_present], *gradients[1:]
    assert_all_close(present_gradients, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("minimum", [1, 128])
def test_the_penalty_is_of_the_squared_log_z(random, monkeypatch, minimum):
    monkeypatch.setattr(weighted_softmax, "LEAST_SENT_AT_A_TIME", minimum)
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 13 * 3)
    arguments = problem(random)
    token_weights = np.array([0.3, 0, 1, 2, 0, 0.7, 0.1])

    def objective(*arguments):
        return weighted_softmax_loss(*arguments, token_weights, penalty=0.4)

    value, gradients = jax.jit(jax.value_and_grad(objective, argnums=(0, 1, 2)))(*arguments)
    loss, log_z = references.softmax_loss(*arguments)
    np.testing.assert_allclose(value, (loss + 0.4 * log_z**2) @ token_weights, rtol=1e-10)
    expected = references.softmax_gradients(*arguments, token_weights, 0.8 * log_z * token_weights)
    assert_all_close(gradients, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("form", ["tokens", "words", "plain"])
@pytest.mark.parametrize(("soft_cap", "temperature"), [(None, 1.0), (1.5, 0.7)])
def test_reports_of_tokens(random, form, soft_cap, temperature, monkeypatch):
    """Beside loss and gradients, which they do not change."""
    if form == "words":  # of a table on several devices
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 7 * 5)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    hidden, weights, bias, targets = problem(random, 13)
    expected = references.softmax_log_probs(hidden, weights, bias, soft_cap, temperature)
    targets[:3] = expected[:3].argmax(-1)
    token_weights = np.array([0.3, 0, 1, 2, 0, 0.7, 0.1])
    shape = {"soft_cap": soft_cap, "temperature": temperature}
    options = {"label_smoothing": 0.2, "penalty": 0.3, **shape}

    def loss(*table, report=False):
        block = 3 if form == "tokens" else None
        arguments = *table, targets, token_weights, block
        return weighted_softmax_loss(*arguments, report=report, **options)

    @jax.jit
    def evaluate(*table):
        plain = jax.value_and_grad(loss, (0, 1, 2))(*table)
        reported = functools.partial(loss, report=True)
        return plain, jax.value_and_grad(reported, (0, 1, 2), has_aux=True)(*table)

    plain, ((value, report), gradients) = evaluate(hidden, weights, bias)
    np.testing.assert_allclose(value, plain[0], rtol=1e-12)
    assert_all_close(gradients, plain[1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(report.log_prob, expected[range(7), targets], rtol=1e-10)
    np.testing.assert_array_equal(report.best_word, expected.argmax(-1))
    np.testing.assert_array_equal(report.correct, expected.argmax(-1) == targets)
    _, log_z = softmax.softmax_loss(hidden, weights, bias, targets, 13, **shape)
    np.testing.assert_allclose(report.log_z, log_z, rtol=1e-10)
    assert report.best_word.dtype == jnp.int32


def test_reports_keep_the_axes_of_tokens(random):
    hidden, weights, bias = random.normal(size=(3, 5, 7)), random.normal(size=(13, 7)), np.zeros(13)
    targets, u = random.integers(13, size=(3, 5)), np.ones((3, 5))
    table = [jnp.float32(array) for array in (hidden, weights, bias)]
    loss, report = jax.jit(functools.partial(weighted_softmax_loss, report=True))(
        *table, targets, u
    )
    assert {leaf.shape for leaf in report} == {(3, 5)}
    np.testing.assert_allclose(loss, -report.log_prob.sum(), rtol=1e-6)
