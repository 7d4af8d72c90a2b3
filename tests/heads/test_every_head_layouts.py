"""Every head in every layout of devices: values, gradients, and what the compiled program sends.

Values are checked at small sizes, with the switches of form moved so that everything is taken in
blocks; work and transfers at large ones, see `measured_layouts`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from tests import examples, layouts
from tests.heads import measured_layouts
from tests.heads.measured_layouts import evaluate_log_prob, evaluate_weighted_loss  # noqa: F401  by name
from tests.marks import slow
from zoo import heads, losses
from zoo.base.arrays import row_blocks
from zoo.lab.training import compiled_programs
from zoo.lexicon import with_features
from zoo.losses import adaptive, hierarchical, log_linear, softmax, weighted_softmax

BATCH_ROWS, TIME, SIZE, VOCABULARY = 12, 4, 8, 64
ALL_WORDS_BYTES = BATCH_ROWS * TIME * (VOCABULARY + 1) * 4
HEADS = {
    "softmax": heads.Softmax(),
    "self-normalised": heads.SelfNormalisedSoftmax(),
    "dense sums": heads.LogLinear(form="dense_sums"),
    "sparse sums": heads.LogLinear(form="sparse_sums"),
    "product": heads.LogLinear(form="product", penalty=0.1),
    "adaptive": heads.AdaptiveSoftmax(cutoffs=(16, 32), division=2),
    "split": heads.SplitSoftmax(cutoffs=(16, 32)),
    "hierarchical": heads.HierarchicalSoftmax(),
    "Huffman": heads.HuffmanSoftmax(),
    "mixture": heads.MixtureOfSoftmaxes(components=3),
    "contexts": heads.MixtureOfContexts(components=3),
    "NCE": heads.NCE(samples=5),
    "importance sampling": heads.ImportanceSampling(samples=5, distinct=True),
    "BlackOut": heads.BlackOut(samples=5),
    "sampled log-linear": heads.SampledLogLinear(estimate="contrastive", samples=5),
    "letters": heads.CNNSoftmax(correction=4),
    "letter by letter": heads.CharLSTM(),
}
OPERATIONS = ("weighted_loss", "loss", "log_prob", "log_probs", "sample", "top_k")
OPERATIONS += ("report", "word_log_probs")
WITH_GRADIENTS = ("weighted_loss", "loss", "report", "word_log_probs")


@functools.cache
def lexicon(size):
    """Words with shared features, of which some have one of their own, and a background."""
    random = np.random.default_rng(1)
    features = [
        {f"tag {word % 4}": 1.0, f"pair {word // 2}": 0.5}
        | ({f"name {word}": 1.0} if word < 20 else {})
        for word in range(size)
    ]
    background = random.uniform(0.5, 2, size)
    return with_features(
        examples.plain_lexicon(size), features, np.log(background / background.sum())
    )


@pytest.fixture
def small_blocks(monkeypatch):
    """Sizes that make blocks of what the tests hold."""
    for module, sizes in (
        (softmax, {"LOGITS_AT_A_TIME": 2048, "LEAST_ROWS_AT_A_TIME": 16}),
        (softmax, {"MOST_ROWS_AT_A_TIME": 16, "NARROW": 1}),
        (weighted_softmax, {"LEAST_SENT_AT_A_TIME": 4}),
        (hierarchical, {"GATHERED_AT_A_TIME": 512}),
        (log_linear, {"MOST_TOKENS": 16, "LEAST_TOKENS": 4}),
        (row_blocks, {"BLOCK": 4}),
        (adaptive, {"TOKENS_AT_A_TIME": 4}),
    ):
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)


class Trial:
    """A head with random parameters, and its results on one device."""

    def __init__(self, name):
        self.head = HEADS[name]
        # A tree over V words has V - 1 vectors.
        words = lexicon(VOCABULARY + 1 if name == "Huffman" else VOCABULARY)
        random = np.random.default_rng(3)
        self.tables = jax.tree.map(jnp.asarray, self.head.tables(words))
        params = examples.random_params(self.head, random, SIZE, words, scale=0.5)
        self.params = jax.tree.map(lambda x: x.astype(jnp.float32), params)
        self.axes = measured_layouts.axes_of(self.head, words)
        shape = BATCH_ROWS, TIME
        weights = random.uniform(0.5, 1, shape) * (random.uniform(size=shape) > 0.2)
        self.token_arrays = (
            jnp.asarray(random.normal(size=(*shape, SIZE)), jnp.float32),
            jnp.asarray(random.integers(0, VOCABULARY, shape), jnp.int32),
            jnp.asarray(weights, jnp.float32),
        )
        self.baseline = functools.cache(lambda operation: self.run(layouts.ONE_DEVICE, operation))

    def run(self, layout, operation):
        method = functools.partial(globals()[f"evaluate_{operation}"], self.head)
        arguments = self.params, self.tables, self.token_arrays, jax.random.key(1), self.axes
        return layout.run(method, *arguments)


trial = functools.cache(Trial)


def evaluate_loss(head, params, tables, hidden, targets, weights, key):
    def loss(params, hidden):
        return jnp.sum(weights * head.loss(params, tables, hidden, targets, key=key))

    value, (params_gradient, hidden_gradient) = jax.value_and_grad(loss, (0, 1))(params, hidden)
    return {"sum": value, "params": params_gradient, "tokens": hidden_gradient}


def evaluate_log_probs(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.log_probs(params, tables, hidden)}


def evaluate_sample(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.sample(params, tables, hidden, key)}


def evaluate_top_k(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.top_k(params, tables, hidden, 3)}


def evaluate_report(head, params, tables, hidden, targets, weights, key):
    arguments = params, tables, hidden, targets, weights
    loss, report = head.weighted_loss_and_report(*arguments, key=key)
    return {"sum": loss, "tokens": report}


def evaluate_word_log_probs(head, params, tables, hidden, targets, weights, key):
    words = jnp.stack([targets, (targets + 5) % VOCABULARY, targets], axis=-1)

    def total(params, hidden):
        log_probs = head.word_log_probs(params, tables, hidden, words, temperature=0.5 + weights)
        return (weights[..., None] * log_probs).sum(), log_probs

    gradients, log_probs = jax.grad(total, (0, 1), has_aux=True)(params, hidden)
    return {"params": gradients[0], "tokens": (gradients[1], log_probs)}


def check_values(program, baseline):
    """The same but for rounding, to the size of the largest number."""
    leaves = jax.tree.leaves(program.results), jax.tree.leaves(baseline.results)
    for actual, expected in zip(*leaves, strict=True):
        expected = np.asarray(expected)
        atol = 3e-6 * np.abs(expected).max() if expected.size else 0
        np.testing.assert_allclose(actual, expected, rtol=3e-5, atol=atol)


# Words are, or may be, in another order in the parameters than in log_probs.
BY_FREQUENCY = ("adaptive", "split", "hierarchical")


def most_gathered(name, layout, operation):
    """Bytes of the largest array that may be sent whole."""
    device_layout = layouts.LAYOUTS[layout]
    reads_words = operation in ("log_probs", "word_log_probs")
    if device_layout.words and name in BY_FREQUENCY and reads_words:
        return ALL_WORDS_BYTES
    automatic = layout in ("batch, automatic", "batch, in_shardings")
    together = HEADS[name].loss_draws and operation == "report"  # whose best words are a top_k
    if operation in ("top_k", "report") and (device_layout.words or automatic or together):
        return ALL_WORDS_BYTES // 2  # of a block of tokens
    has_features = name == "product" or name.endswith(("sums", "log-linear"))
    if device_layout.words and has_features:
        return trial(name).params["weights"].nbytes  # sent once
    if device_layout.words and name == "letters":
        return VOCABULARY * SIZE * 4  # the vectors, of which the corrections are shared out
    if layout in ("batch, explicit", "batch, shard_map") and operation != "sample":
        return 0
    return BATCH_ROWS * TIME * 16  # some numbers a token


def check(name, layout, operation):
    """Checks values, and that no large array is sent whole."""
    head_trial, device_layout = trial(name), layouts.LAYOUTS[layout]
    program, baseline = head_trial.run(device_layout, operation), head_trial.baseline(operation)
    if not (operation == "sample" and layout in ("batch, shard_map", "batch, pmap")):
        check_values(program, baseline)  # there a key draws the same on all devices
    if layout == "batch, pmap":  # its program is that of one device, and what it sums its caller's
        return
    gathered = program.largest("all-gather", "all-to-all", "collective-permute")
    assert gathered <= most_gathered(name, layout, operation)
    sums = sum(c.times for c in program.collectives if c.kind == "all-reduce")
    if layout in ("batch, explicit", "batch, shard_map") and not head_trial.head.loss_draws:
        # One of all gradients, perhaps one of the loss.
        assert sums <= (2 if operation in WITH_GRADIENTS else 0)


CORE = (
    ("softmax", "batch, automatic", "weighted_loss"),
    ("softmax", "batch, explicit", "weighted_loss"),
    ("softmax", "batch, shard_map", "weighted_loss"),
    ("softmax", "words, automatic", "loss"),
    ("softmax", "words, automatic", "word_log_probs"),
    ("softmax", "batch, shard_map", "word_log_probs"),
    ("softmax", "batch, explicit", "report"),
    ("adaptive", "batch, explicit", "word_log_probs"),
    ("adaptive", "batch, explicit", "log_prob"),
    ("mixture", "batch and words, explicit", "log_prob"),
)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("name", "layout", "operation"), CORE)
def test_layouts(name, layout, operation):
    check(name, layout, operation)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
@pytest.mark.parametrize("name", HEADS)
def test_every_head_in_every_layout(name, layout, operation):
    if HEADS[name].spells and operation not in ("weighted_loss", "loss", "log_prob"):
        pytest.skip("over all spellings, of which there is no end")
    check(name, layout, operation)


MEASUREMENTS = measured_layouts.read_measurements()
FAST_KEYS = [
    ("adaptive", "batch, automatic", "log_prob"),
    ("product", "words, automatic", "log_prob"),
]


def check_measured(key):
    """No more work and no more bytes than were measured, but for another release of JAX."""
    measurement, bound = measured_layouts.measure(*key), MEASUREMENTS[key]
    assert measurement.share <= bound.share + 0.01
    assert measurement.sent <= 1.02 * bound.sent + 10_000


@pytest.mark.parametrize("key", [FAST_KEYS[1], *slow((FAST_KEYS[0],))])
def test_work_and_transfers_of_some(key):
    check_measured(key)


@pytest.mark.parametrize("name", ["adaptive", *slow("letter by letter")])
def test_tokens_are_sorted_by_device_where_shardings_alone_are_given(name):
    layout = layouts.LAYOUTS["batch, in_shardings"]
    program = measured_layouts.program(name, layout, "log_prob")
    assert program.flops <= 0.26 * measured_layouts.flops_alone(name, "log_prob")
    assert program.sent <= 1000


@pytest.mark.slow
@pytest.mark.parametrize("key", MEASUREMENTS)
def test_work_and_transfers(key):
    check_measured(key)


def test_tokens_are_shared_out_by_every_head():
    """On automatic and on explicit axes, for values and gradients."""
    shares = {key: x.share for key, x in MEASUREMENTS.items() if key[1].startswith("batch")}
    assert len(shares) == 4 * len(HEADS)
    assert {key for key, share in shares.items() if share > 0.3} == set()


def test_features_that_are_shared_out_are_sent_once():
    for name in ("dense sums", "sparse sums", "product"):
        assert MEASUREMENTS[name, "words, automatic", "log_prob"].sent <= 1e6
    for name in ("dense sums", "product"):
        assert MEASUREMENTS[name, "words, automatic", "weighted_loss"].sent <= 1e6


def test_a_step_of_sparse_sums_shares_its_work_out_and_sends_half_a_table():
    table = measured_layouts.VOCABULARY * measured_layouts.SIZE * 4
    measurement = MEASUREMENTS["sparse sums", "words, automatic", "weighted_loss"]
    assert measurement.share <= 0.26 and measurement.sent <= 0.55 * table


def test_the_documents_have_the_table():
    page = measured_layouts.PAGE.read_text()
    assert measured_layouts.table(MEASUREMENTS) in page
    assert measured_layouts.with_table(page, MEASUREMENTS) == page


def test_every_head_is_laid_out():
    """But those that hand on what another head gives."""
    tried = {type(head) for head in HEADS.values()} | {heads.Head}
    tried |= {heads.WithCache, heads.WithExpert, heads.SpreadUnknown}
    exported = {kind for kind in vars(heads).values() if isinstance(kind, type)}
    assert tried == {kind for kind in exported if issubclass(kind, heads.Head)}
    assert measured_layouts.HEADS.keys() == HEADS.keys()


def test_words_along_the_only_axis_of_a_mesh_stay_in_place():
    """A single axis is not taken for one of tokens: the table is neither gathered nor summed."""
    mesh = jax.make_mesh((4,), ("words",), axis_types=(layouts.AUTO,))
    tokens, size, words = 512, 32, 32768
    shapes = {"hidden": (tokens, size), "weights": (words, size), "bias": (words,)}
    parts = {"hidden": None, "weights": "words", "bias": "words"}
    shardings = {name: NamedSharding(mesh, PartitionSpec(part)) for name, part in parts.items()}
    arrays = [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=shardings[name])
        for name, shape in shapes.items()
    ]
    kinds = jnp.int32, jnp.float32
    targets, token_weights = (jax.ShapeDtypeStruct((tokens,), kind) for kind in kinds)
    step = jax.jit(jax.value_and_grad(losses.weighted_softmax_loss, (0, 1, 2)))
    compiled = step.lower(*arrays, targets, token_weights).compile()
    collectives, _ = compiled_programs.read(compiled.as_text())
    assert 0 < max(collective.size for collective in collectives) <= tokens * size * 4 * 1.1


def test_collectives_are_read_with_how_often_they_run():
    mesh = jax.make_mesh((4,), ("data",), axis_types=(layouts.AUTO,))

    def function(rows):
        def step(total, row):
            return total + jax.lax.psum(row.sum(), "data"), None

        return jax.lax.scan(step, jnp.zeros(()), rows)[0]

    specs = {"in_specs": PartitionSpec("data"), "out_specs": PartitionSpec()}
    program = layouts.run(jax.jit(jax.shard_map(function, mesh=mesh, **specs)), jnp.ones((20, 3)))
    assert program.summary() == {"all-reduce": (5, 4)}
    assert program.results == 60
    product = layouts.run(jax.jit(jnp.matmul), jnp.ones((5, 3)), jnp.ones((3, 7)))
    assert (product.collectives, product.flops) == ((), 2 * 5 * 3 * 7)
