"""The exact softmax losses against numpy: values, gradients, odd sizes, hard numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import references
from zoo.base.arrays import sharded_functions
from zoo.losses import softmax, top_k, weighted_softmax
from zoo.losses.weighted_softmax import weighted_softmax_loss

# (words, block of words, None for the plain loss). 13 and 2,049 words make the last block small;
# block 1 has nothing but first blocks, block 13 nothing but one.
SIZES = [(13, None), (13, 1), (13, 4), (13, 13), (2049, None), (2049, 256)]


def problem(random, words=13, tokens=7, size=5, scale=1.0):
    """(hidden, weights, bias, targets)."""
    return (
        random.normal(size=(tokens, size)),
        scale * random.normal(size=(words, size)),
        scale * random.normal(size=words),
        random.integers(words, size=tokens),
    )


def losses(hidden, weights, bias, targets, block):
    """(loss, log Z) of the plain or the blocked loss."""
    if block is None:
        return softmax.plain_terms(softmax.Wanted(), hidden, weights, bias, targets)[:2]
    return softmax.blocked_terms(softmax.Wanted(), block, hidden, weights, bias, targets)[:2]


@functools.cache  # One compilation for all tests of the same shapes.
def gradient_function(block):
    """Jitted: gradients of sum_n a_n loss_n + b_n log Z_n, and (loss, log Z)."""

    def objective(hidden, weights, bias, targets, loss_weights, log_z_weights):
        loss, log_z = losses(hidden, weights, bias, targets, block)
        return jnp.sum(loss_weights * loss) + jnp.sum(log_z_weights * log_z), (loss, log_z)

    return jax.jit(jax.grad(objective, argnums=(0, 1, 2), has_aux=True))


def with_gradients(block, *arguments):
    """((loss, log Z), gradients with respect to hidden, weights and bias)."""
    gradients, results = gradient_function(block)(*arguments)
    return results, gradients


@functools.cache
def weighted(block, factor=1.0):
    """The jitted value and gradients of factor * weighted_softmax_loss."""

    def objective(hidden, weights, bias, targets, token_weights):
        sums = weighted_softmax_loss(hidden, weights, bias, targets, token_weights, block)
        return factor * sums

    return jax.jit(jax.value_and_grad(objective, argnums=(0, 1, 2)))


def assert_all_close(found, expected, **tolerances):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **tolerances)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("words", "block"), SIZES)
def test_loss_log_z_and_gradients(random, words, block):
    # Small logits: one that is counted twice, or a padded one, is a visible share of Z.
    arguments = problem(random, words, scale=0.01 if words > 13 else 1.0)
    loss_weights, log_z_weights = random.normal(size=(2, 7))
    results, gradients = with_gradients(block, *arguments, loss_weights, log_z_weights)
    assert_all_close(results, references.softmax_loss(*arguments), rtol=1e-11)
    expected = references.softmax_gradients(*arguments, loss_weights, log_z_weights)
    assert_all_close(gradients, expected, rtol=1e-9, atol=1e-12)


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
    monkeypatch.setattr(sharded_functions, "is_local", lambda: True)
    monkeypatch.setattr(weighted_softmax, "ENTRIES_AT_A_TIME", rows * 5)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    return words


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("shape", [{}, {"label_smoothing": 0.2}, {"soft_cap": 1.5, "penalty": 0.3}])
def test_weighted_loss_by_blocks_of_words(random, words_in_blocks, shape):
    arguments = problem(random, words_in_blocks)
    token_weights = np.array([0.3, 0, 1, 2, 0, 0.7, 0.1])
    shaping = softmax.Shaping.of(shape.get("soft_cap"), 0.7)
    wanted = softmax.Wanted(shape.get("label_smoothing", 0.0))

    def objective(*arguments):
        return weighted_softmax_loss(*arguments, token_weights, 3, temperature=0.7, **shape)

    def by_definition(*arguments):
        loss, log_z, *_ = softmax.plain_terms(wanted, *arguments, shaping)
        return token_weights @ (loss + shape.get("penalty", 0.0) * log_z**2)

    value, gradients = jax.jit(jax.value_and_grad(objective, (0, 1, 2)))(*arguments)
    expected, slopes = jax.value_and_grad(by_definition, (0, 1, 2))(*arguments)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert_all_close(gradients, slopes, rtol=1e-9, atol=1e-12)
    if not shape:
        hidden, weights, bias, targets = arguments
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
        given = weights, bias, jnp.zeros(8, int), jnp.ones(8)
        return weighted_softmax_loss(hidden.reshape(8, 9), *given)[None]

    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("data")
    function, given = {
        "jit": (jax.jit(loss), hidden[0]),
        "pmap": (jax.pmap(loss), hidden),
        "shard_map": (jax.shard_map(loss, mesh=mesh, in_specs=spec, out_specs=spec), hidden),
    }[place]
    program = str(jax.make_jaxpr(jax.grad(lambda x: function(x).sum()))(given))
    assert ("f32[8,5]" in program) == (place != "jit")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_blocks_of_words_change_no_more_than_rounding(random, words_in_blocks, dtype, monkeypatch):
    arguments = [jnp.asarray(x, dtype) for x in problem(random, words_in_blocks)[:3]]
    given = *arguments, random.integers(words_in_blocks, size=7), np.array([1, 0, 2, 0.5, 0, 3, 1])
    given = given[0].at[jnp.array([1, 4])].set(jnp.nan), *given[1:]  # padding may hold anything

    def graded(*given):
        return jax.value_and_grad(weighted_softmax_loss, (0, 1, 2))(*given)

    found = jax.jit(graded)(*given)
    monkeypatch.setattr(weighted_softmax, "ENTRIES_AT_A_TIME", 10**6)
    whole = jax.jit(lambda *given: graded(*given))(*given)
    step = {"float32": 1e-6, "bfloat16": 2**-7}[dtype]
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(whole), strict=True):
        assert one.dtype == other.dtype
        one, other = np.float64(one), np.float64(other)
        np.testing.assert_allclose(one, other, rtol=step, atol=step * np.abs(other).max())


@pytest.mark.parametrize("local", [True, False])
def test_the_weighted_loss_takes_a_tenth_of_the_memory_of_all_logits(local, monkeypatch):
    monkeypatch.setattr(sharded_functions, "is_local", lambda: local)
    tokens, size, words = 4096, 64, 40_000
    shapes = [(tokens, size), (words, size), (words,)]
    floats = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    integers = jax.ShapeDtypeStruct((tokens,), jnp.int32)

    def plain(*arguments):
        return softmax.plain_terms(softmax.Wanted(), *arguments).loss.mean()

    def fused(*arguments):
        return weighted_softmax_loss(*arguments, jnp.full(tokens, 1 / tokens))

    held = [
        jax.jit(jax.value_and_grad(function, (0, 1, 2)))
        .lower(*floats, integers)
        .compile()
        .memory_analysis()
        .temp_size_in_bytes
        for function in (fused, plain)
    ]
    assert held[0] < held[1] / 10
    # The logits of a block are not larger than the gradient of W, beside some megabytes.
    assert held[0] < 4 * words * size + 4 * softmax.LOGITS_AT_A_TIME


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


def test_blocks_of_tokens_are_even(monkeypatch):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 1000 * 100)
    assert softmax.token_block(90, 1000) == 90
    assert softmax.token_block(101, 1000) == 51
    assert softmax.token_block(210, 1000) == 70
    assert softmax.token_block(640, 10**6) == 1
    assert softmax.token_block(640, 10**6, least=280) == 160


def test_blocks_of_words_do_not_outgrow_the_vocabulary():
    assert softmax.vocabulary_block(1, 13, 256) == 13
    assert softmax.vocabulary_block(40_000, 100, 256) == 100  # many tokens of a small vocabulary
    assert softmax.vocabulary_block(1, 10**6, 256) == 10**6
    assert softmax.vocabulary_block(10**9, 10**6, 256) == 128
    assert softmax.vocabulary_block(256, 10**6, 256) == softmax.MOST_ROWS_AT_A_TIME
    assert softmax.vocabulary_block(4096, 10**6, 256) == softmax.LOGITS_AT_A_TIME // 4096
    # One token may take all words at once that fit; so may none.
    for tokens in (0, 1):
        most = softmax.LOGITS_AT_A_TIME
        assert softmax.vocabulary_block(tokens, most, 256) == most
        assert softmax.vocabulary_block(tokens, most + 1, 256) == softmax.MOST_ROWS_AT_A_TIME
    # Of narrow tables more rows are as large.
    rows = [softmax.vocabulary_block(32, 10**6, columns) for columns in (1024, 64, 4)]
    assert rows == [2048, 8192, 16384]


@pytest.mark.parametrize(("width", "tokens"), [(0, 2), (10, 1)])
def test_measured_losses_hold_some_tokens_at_a_time(monkeypatch, width, tokens):
    """Blocks are of the words, or of the numbers that the measure holds."""
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 10)
    log_measure = jax.tree_util.Partial(lambda contexts: jnp.zeros((*contexts.shape, 5)))
    given = jnp.ones((8, 9)), jnp.ones((5, 9)), jnp.ones(5), jnp.zeros(8, int)

    def loss(contexts):
        return softmax.softmax_loss(*given, None, log_measure, contexts, width)

    program = str(jax.make_jaxpr(loss)(jnp.zeros(8)))
    assert {n for n in range(1, 9) if f"f32[{n},5]" in program} == {tokens}


# As many as the words allow, or a number of tokens, which is at most the columns of W, or more of
# a narrow table.
@pytest.mark.parametrize(
    ("least", "narrow", "tokens"), [(1, 1, 2), (4, 1, 4), (280, 1, 8), (280, 20, 20)]
)
def test_weighted_losses_hold_some_tokens_at_a_time(monkeypatch, least, narrow, tokens):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 10)
    monkeypatch.setattr(weighted_softmax, "LEAST_OF_NARROW", narrow)
    monkeypatch.setattr(weighted_softmax, "LEAST_TOKENS_AT_A_TIME", least)
    monkeypatch.setattr(sharded_functions, "is_local", lambda: True)
    weights, bias, targets = jnp.ones((5, 9)), jnp.ones(5), jnp.zeros(40, int)

    def loss(hidden):
        return weighted_softmax_loss(hidden, weights, bias, targets, jnp.ones(40))

    program = str(jax.make_jaxpr(loss)(jnp.ones((40, 9))))
    # W, transposed, has nine rows.
    assert {n for n in {*range(1, 41)} - {9} if f"f32[{n},5]" in program} == {tokens}


@pytest.mark.parametrize("block", [None, 256])
def test_bfloat16_is_accumulated_in_float32(random, block):
    arguments = problem(random, words=2049, size=64, scale=0.1)
    arguments = [jnp.asarray(x, jnp.bfloat16) for x in arguments[:3]] + [arguments[3]]
    loss_weights, log_z_weights = np.ones(7, np.float32), np.zeros(7, np.float32)
    (loss, log_z), gradients = with_gradients(block, *arguments, loss_weights, log_z_weights)
    assert loss.dtype == log_z.dtype == jnp.float32
    assert [g.dtype for g in gradients] == [jnp.bfloat16] * 3
    # Of the rounded inputs, so that nothing but the accumulation is left to differ.
    expected_loss, expected_log_z = references.softmax_loss(*arguments)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    np.testing.assert_allclose(log_z, expected_log_z, rtol=1e-5)
    expected = references.softmax_gradients(*arguments, loss_weights, log_z_weights)
    for found, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(found, np.float64), wanted, rtol=0.01, atol=0.01 * np.abs(wanted).max()
        )
    value, _ = weighted(3)(*arguments, loss_weights)
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, expected_loss.sum(), rtol=1e-5)


@pytest.mark.parametrize("form", ["blocked", "weighted"])
def test_bfloat16_gradients_of_sure_tokens(random, form):
    """Where p(x) is near 1, expected and observed cancel: rounded one by one, little is left."""
    hidden, weights, bias, _ = problem(random, words=65, tokens=40, size=16)
    arguments = [jnp.asarray(x, jnp.bfloat16) for x in (1.5 * hidden, weights, bias)]
    logits = np.asarray(arguments[0], float) @ np.asarray(arguments[1], float).T
    arguments.append((logits + np.asarray(arguments[2], float)[None]).argmax(-1))
    ones = np.ones(40, np.float32)
    if form == "weighted":
        _, gradients = weighted(9)(*arguments, ones)
    else:
        _, gradients = with_gradients(16, *arguments, ones, 0 * ones)
    assert [g.dtype for g in gradients] == [jnp.bfloat16] * 3
    expected = references.softmax_gradients(*arguments, ones, 0 * ones)
    references.assert_rows_close(gradients[0], expected[0], 0.01)
    references.assert_rows_close(gradients[1], expected[1], 0.01)


@pytest.mark.parametrize("form", ["plain", "blocked", "weighted"])
def test_a_frequent_word_does_not_saturate_bfloat16_gradients(form):
    # 1/1024 added to -1/2 changes nothing in bfloat16, which has 8 bits.
    tokens, weight = 1024, 1 / 1024
    hidden = jnp.ones((tokens, 1), jnp.bfloat16)
    weights, bias = jnp.zeros((13, 1), jnp.bfloat16), jnp.zeros(13, jnp.bfloat16)
    targets, token_weights = np.zeros(tokens, np.int32), np.full(tokens, weight, np.float32)
    if form == "weighted":
        _, gradients = weighted(64)(hidden, weights, bias, targets, token_weights)
    else:
        _, gradients = with_gradients(
            None if form == "plain" else 4,
            *(hidden, weights, bias, targets, token_weights, 0 * token_weights),
        )
    expected = np.full(13, 1 / 13) - np.eye(13)[0]
    for gradient in (gradients[1][:, 0], gradients[2]):
        np.testing.assert_allclose(np.asarray(gradient, np.float64), expected, rtol=0.01)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("block", [None, 4])
def test_extreme_logits(random, block, sign):
    hidden, weights, bias, targets = problem(random)
    bias[::2] = sign * 1e4
    arguments = [np.float32(x) for x in (hidden, weights, bias)] + [targets]
    (loss, log_z), gradients = with_gradients(
        block, *arguments, np.ones(7, np.float32), np.ones(7, np.float32)
    )
    expected = references.softmax_loss(*arguments)
    assert_all_close((loss, log_z), expected, rtol=1e-5, atol=0.01)
    expected_gradients = references.softmax_gradients(*arguments, np.ones(7), np.ones(7))
    assert_all_close(gradients, expected_gradients, atol=0.02)
    value, gradients = weighted(3)(*arguments, np.ones(7, np.float32))
    np.testing.assert_allclose(value, expected[0].sum(), rtol=1e-5, atol=0.05)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("massless", [slice(0, 4), slice(3, 9), slice(8, 13)])
@pytest.mark.parametrize("block", [None, 1, 4])
def test_words_without_mass(random, block, massless):
    """-inf in the bias: whole blocks of it, the first and the last among them."""
    hidden, weights, bias, _ = problem(random)
    bias[massless] = -np.inf
    targets = random.choice(np.flatnonzero(np.isfinite(bias)), size=7)
    arguments = hidden, weights, bias, targets
    results, gradients = with_gradients(block, *arguments, np.ones(7), np.ones(7))
    assert_all_close(results, references.softmax_loss(*arguments), rtol=1e-11)
    expected = references.softmax_gradients(*arguments, np.ones(7), np.ones(7))
    assert_all_close(gradients, expected, rtol=1e-9, atol=1e-12)


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
    given = {}
    if measured:
        log_measure = jax.tree_util.Partial(lambda contexts: contexts)
        given = {"log_measure": log_measure, "contexts": log_masses.at[4].set(-jnp.inf)}
    else:
        hidden[4] = 1e308

    def summed(hidden, weights, bias):
        return weighted_softmax_loss(hidden, weights, bias, targets, token_weights, 3, **given)

    value, gradients = jax.jit(jax.value_and_grad(summed, (0, 1, 2)))(hidden, weights, bias)
    others = np.arange(7) != 4
    columns = hidden[others], weights, bias, targets[others]
    np.testing.assert_allclose(value, references.softmax_loss(*columns)[0].sum(), rtol=1e-12)
    expected = references.softmax_gradients(*columns, np.ones(6), np.zeros(6))
    np.testing.assert_array_equal(gradients[0][4], 0)
    found = gradients[0][others], *gradients[1:]
    assert_all_close(found, expected, rtol=1e-9, atol=1e-12)


def test_a_walk_over_many_blocks_is_as_exact_as_the_sum(random):
    """In float32, over 2,000 blocks: a logarithm a block would be off by some 1e-5."""
    hidden, bias = random.normal(size=(5, 4)), np.zeros(32_000)
    weights = 0.1 * random.normal(size=(32_000, 4))
    arrays = [jnp.asarray(array, jnp.float32) for array in (hidden, weights, bias)]
    found = jax.jit(top_k.blocked_pass, static_argnums=3, static_argnames="k")(*arrays, 16, k=2)
    log_z = [references.log_sum_exp(weights @ state) for state in hidden]
    np.testing.assert_allclose(found.log_z, log_z, atol=4e-6)


@functools.cache
def passed(block, k, with_key):
    """The jitted walk over the vocabulary."""

    def walk(hidden, weights, bias, key):
        key = key if with_key else None
        return top_k.blocked_pass(hidden, weights, bias, block, k=k, key=key)

    return jax.jit(walk)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("words", "block"), [(13, 5), (13, 13), (2049, 256)])
def test_one_walk_finds_log_z_and_the_best_words(random, words, block):
    hidden, weights, bias, targets = problem(random, words, scale=0.1)
    found = passed(block, 5, False)(hidden, weights, bias, jax.random.key(0))
    scores = hidden @ weights.T + bias
    _, log_z = references.softmax_loss(hidden, weights, bias, targets)
    np.testing.assert_allclose(found.log_z, log_z, rtol=1e-12)
    best = np.argsort(-scores, axis=-1)[:, :5]
    np.testing.assert_array_equal(found.words, best)
    np.testing.assert_allclose(found.values, np.take_along_axis(scores, best, 1), rtol=1e-12)
    assert found.sample is None


@pytest.mark.parametrize("block", [4, 13])
def test_words_drawn_in_blocks_have_the_probabilities_of_the_softmax(random, block):
    draws = 20_000
    hidden, weights, bias, _ = problem(random, tokens=1)
    many = np.broadcast_to(hidden, (draws, 5))
    words = passed(block, 0, True)(many, weights, bias, jax.random.key(1)).sample
    (log_probs,) = references.softmax_log_probs(hidden, weights, bias)
    observed = np.bincount(words, minlength=13)
    assert scipy.stats.chisquare(observed, draws * np.exp(log_probs)).pvalue > 1e-3


def test_top_k_and_samples_keep_the_leading_axes(random):
    hidden, weights, bias, _ = (np.float32(array) for array in problem(random, tokens=6))
    log_probs, words = top_k.softmax_top_k(hidden.reshape(2, 3, 5), weights, bias, 4)
    expected = references.softmax_log_probs(hidden, weights, bias)
    assert words.shape == (2, 3, 4)
    sorted_log_probs = -np.sort(-expected, axis=-1)[:, :4].reshape(2, 3, 4)
    np.testing.assert_allclose(log_probs, sorted_log_probs, rtol=1e-4)
    sample = top_k.softmax_sample(hidden.reshape(2, 3, 5), weights, bias, jax.random.key(0))
    assert sample.shape == (2, 3)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("least", [1, 128])
def test_the_penalty_is_of_the_squared_log_z(random, monkeypatch, least):
    monkeypatch.setattr(weighted_softmax, "LEAST_SENT_AT_A_TIME", least)
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
