"""The exact softmax losses against numpy: values, gradients, odd sizes, hard numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests import references
from zoo.lab.training import compiled_programs
from zoo.losses import softmax
from zoo.losses.shaping import UNSHAPED
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
        return softmax.plain_terms(softmax.TermOptions(), (hidden, weights, bias), targets)[:2]
    options, table = softmax.TermOptions(), (hidden, weights, bias)
    return softmax.blocked_terms(options, block, table, targets, UNSHAPED)[:2]


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


def assert_all_close(actual, expected, **tolerances):
    for actual_array, expected_array in zip(actual, expected, strict=True):
        np.testing.assert_allclose(actual_array, expected_array, **tolerances)


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


def test_blocks_of_tokens_are_even(monkeypatch):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 1000 * 100)
    assert softmax.token_block(90, 1000) == 90
    assert softmax.token_block(101, 1000) == 51
    assert softmax.token_block(210, 1000) == 70
    assert softmax.token_block(640, 10**6) == 1
    assert softmax.token_block(640, 10**6, minimum=280) == 160


def test_blocks_of_words_do_not_outgrow_the_vocabulary():
    assert softmax.vocabulary_block(1, 13, 256) == 13
    assert softmax.vocabulary_block(40_000, 100, 256) == 100  # many tokens of a small vocabulary
    assert softmax.vocabulary_block(1, 10**6, 256) == 10**6
    assert softmax.vocabulary_block(10**9, 10**6, 256) == 128
    assert softmax.vocabulary_block(256, 10**6, 256) == softmax.MOST_ROWS_AT_A_TIME
    assert softmax.vocabulary_block(4096, 10**6, 256) == softmax.LOGITS_AT_A_TIME // 4096
    # One token may take all words at once that fit; so may none.
    for tokens in (0, 1):
        logits_at_a_time = softmax.LOGITS_AT_A_TIME
        assert softmax.vocabulary_block(tokens, logits_at_a_time, 256) == logits_at_a_time
        assert (
            softmax.vocabulary_block(tokens, logits_at_a_time + 1, 256)
            == softmax.MOST_ROWS_AT_A_TIME
        )
    # Of narrow tables more rows are as large.
    rows = [softmax.vocabulary_block(32, 10**6, columns) for columns in (1024, 64, 4)]
    assert rows == [2048, 8192, 16384]


@pytest.mark.parametrize(("width", "tokens"), [(0, 2), (10, 1)])
def test_measured_losses_hold_some_tokens_at_a_time(monkeypatch, width, tokens):
    """Blocks are of the words, or of the numbers that the measure holds."""
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 10)
    log_measure = jax.tree_util.Partial(lambda contexts: jnp.zeros((*contexts.shape, 5)))
    arguments = jnp.ones((8, 9)), jnp.ones((5, 9)), jnp.ones(5), jnp.zeros(8, int)

    def loss(contexts):
        return softmax.softmax_loss(*arguments, None, log_measure, contexts, width)

    program = str(jax.make_jaxpr(loss)(jnp.zeros(8)))
    assert {n for n in range(1, 9) if f"f32[{n},5]" in program} == {tokens}


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
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(gradient, np.float64),
            expected_gradient,
            rtol=0.01,
            atol=0.01 * np.abs(expected_gradient).max(),
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
    token_weights = np.ones(40, np.float32)
    if form == "weighted":
        _, gradients = weighted(9)(*arguments, token_weights)
    else:
        _, gradients = with_gradients(16, *arguments, token_weights, 0 * token_weights)
    assert [g.dtype for g in gradients] == [jnp.bfloat16] * 3
    expected = references.softmax_gradients(*arguments, token_weights, 0 * token_weights)
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


@pytest.mark.parametrize("words", [48, 53])  # 53 do not divide by the devices: columns are cut
@pytest.mark.parametrize("shape", [(2, 2), (1, 4), (4, 1)])
def test_on_a_mesh_nothing_is_sent_in_the_loops_over_words(random, monkeypatch, shape, words):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 8 * 6)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 3)
    arguments = problem(random, words, tokens=8, size=4)
    token_weights = random.uniform(size=8)
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    cut = P("model") if words % shape[1] == 0 else P(None, "model")
    specs = P("data"), cut, cut if len(cut) == 1 else P(), P("data"), P("data")
    placed = [
        jax.device_put(x.astype(np.float32) if x.dtype.kind == "f" else x, NamedSharding(mesh, s))
        for x, s in zip((*arguments, token_weights), specs, strict=True)
    ]
    objective = functools.partial(weighted_softmax_loss, penalty=0.4)
    program = jax.jit(jax.value_and_grad(objective, (0, 1, 2))).lower(*placed).compile()
    collectives, products = compiled_programs.read(program.as_text())
    assert max(products.values()) > 1 and not any(each.in_loop for each in collectives)
    value, gradients = program(*placed)
    loss, log_z = references.softmax_loss(*arguments)
    np.testing.assert_allclose(value, (loss + 0.4 * log_z**2) @ token_weights, rtol=1e-5)
    expected = references.softmax_gradients(*arguments, token_weights, 0.8 * log_z * token_weights)
    assert_all_close(gradients, expected, rtol=1e-4, atol=1e-5)


def test_a_run_of_words_without_mass_has_no_gradient(random, monkeypatch):
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 8 * 6)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 3)
    hidden, weights, bias, targets = problem(random, 48, tokens=8, size=4)
    bias[24:], targets = -np.inf, targets % 24
    mesh = jax.make_mesh((1, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    specs = P("data"), P("model"), P("model"), P("data")
    placed = [
        jax.device_put(x.astype(np.float32) if x.dtype.kind == "f" else x, NamedSharding(mesh, s))
        for x, s in zip((hidden, weights, bias, targets), specs, strict=True)
    ]

    def objective(hidden, weights, bias, targets):
        return weighted_softmax_loss(hidden, weights, bias, targets, jnp.ones(8))

    gradients = jax.jit(jax.grad(objective, (0, 1)))(*placed)
    arguments = hidden, weights[:24], bias[:24], targets
    expected = references.softmax_gradients(*arguments, np.ones(8), np.zeros(8))
    assert_all_close([gradients[0], gradients[1][:24]], expected[:2], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(gradients[1][24:], 0)
