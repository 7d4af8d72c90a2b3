"""Every head in every layout of devices: values, gradients, and what the compiled program sends.

Sizes are small and the switches of form are moved, so that everything is taken in blocks.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from tests import examples, layouts
from zoo import heads
from zoo.arrays import by_length
from zoo.lexicon import with_features
from zoo.losses import feature_scores, hierarchical, softmax, softmax_sum

LANES, TIME, SIZE, VOCABULARY = 12, 4, 8, 64
ALL_WORDS_BYTES = LANES * TIME * (VOCABULARY + 1) * 4
HEADS = {
    "softmax": heads.Softmax(),
    "self-normalised": heads.SelfNormalisedSoftmax(),
    "dense sums": heads.LogLinear(form="dense_sums"),
    "sparse sums": heads.LogLinear(form="sparse_sums"),
    "product": heads.LogLinear(form="product", penalty=0.1),
    "adaptive": heads.AdaptiveSoftmax(cutoffs=(16, 32), division=2),
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


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Sizes that make blocks of what the tests hold."""
    for module, sizes in (
        (softmax, {"LOGITS_AT_A_TIME": 2048, "LEAST_ROWS_AT_A_TIME": 16}),
        (softmax, {"MOST_ROWS_AT_A_TIME": 16}),
        (softmax_sum, {"LEAST_TOKENS_AT_A_TIME": 4}),
        (hierarchical, {"GATHERED_AT_A_TIME": 512}),
        (feature_scores, {"MOST_TOKENS": 16, "LEAST_TOKENS": 4}),
        (by_length, {"BLOCK": 16}),
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
        self.axes = jax.tree.map(
            lambda names: tuple("words" if name == "features" else name for name in names),
            self.head.partition(words),
            is_leaf=lambda x: isinstance(x, PartitionSpec),
        )
        shape = LANES, TIME
        weights = random.uniform(0.5, 1, shape) * (random.uniform(size=shape) > 0.2)
        self.of_tokens = (
            jnp.asarray(random.normal(size=(*shape, SIZE)), jnp.float32),
            jnp.asarray(random.integers(0, VOCABULARY, shape), jnp.int32),
            jnp.asarray(weights, jnp.float32),
        )
        self.alone = functools.cache(lambda operation: self.run(layouts.ALONE, operation))

    def run(self, layout, operation):
        method = functools.partial(globals()[f"of_{operation}"], self.head)
        arguments = self.params, self.tables, self.of_tokens, jax.random.key(1), self.axes
        return layout.run(method, *arguments)


trial = functools.cache(Trial)


def of_weighted_loss(head, params, tables, hidden, targets, weights, key):
    def weighted_loss(params, hidden):
        return head.weighted_loss(params, tables, hidden, targets, weights, key=key)

    return _with_gradients(weighted_loss, params, hidden)


def of_loss(head, params, tables, hidden, targets, weights, key):
    def loss(params, hidden):
        return jnp.sum(weights * head.loss(params, tables, hidden, targets, key=key))

    return _with_gradients(loss, params, hidden)


def _with_gradients(function, params, hidden):
    value, (of_params, of_hidden) = jax.value_and_grad(function, (0, 1))(params, hidden)
    return {"sum": value, "params": of_params, "tokens": of_hidden}


def of_log_prob(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.log_prob(params, tables, hidden, targets)}


def of_log_probs(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.log_probs(params, tables, hidden)}


def of_sample(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.sample(params, tables, hidden, key)}


def of_top_k(head, params, tables, hidden, targets, weights, key):
    return {"tokens": head.top_k(params, tables, hidden, 3)}


def check_values(program, alone):
    """The same but for rounding, to the size of the largest number."""
    leaves = jax.tree.leaves(program.results), jax.tree.leaves(alone.results)
    for found, expected in zip(*leaves, strict=True):
        expected = np.asarray(expected)
        atol = 3e-6 * np.abs(expected).max() if expected.size else 0
        np.testing.assert_allclose(found, expected, rtol=3e-5, atol=atol)


# The share of the products of one device that each of four does, where it is not a fourth: with the
# batch, and with the words shared out.
SHARES = {
    # Sums of feature vectors are formed on every device, and are for all tokens.
    "dense sums": (0.65, 1.05),
    "sparse sums": (0.3, 1.05),
    # Vectors of classes and contexts of tokens are for all words.
    "adaptive": (0.3, 0.75),
    "hierarchical": (0.3, 0.75),
    "Huffman": (0.3, 1.05),  # rows of the paths alone
    "mixture": (0.3, 0.65),
    "contexts": (0.3, 0.85),
    # Few words are scored: all of them on every device.
    **dict.fromkeys(("NCE", "importance sampling", "BlackOut"), (0.35, 1.1)),
    "sampled log-linear": (1.1, 1.1),  # sums of feature vectors, as above, and draws
    # Vectors of all words are made of letters on every device.
    "letters": (1.05, 1.05),
    "letter by letter": (0.85, 1.05),
}
# Tokens are sorted over all devices where the compiler does not know that each may sort its own:
# the share that each of four then does, as docs/your_model.md has it.
SORTED = {"adaptive": 0.75, "letter by letter": 1.0}
# Words are in another order in the parameters than in log_probs.
BY_FREQUENCY = ("adaptive", "hierarchical")


def most_gathered(name, layout, operation):
    """Bytes of the largest array that may be sent whole, or None for any."""
    of_layout = layouts.LAYOUTS[layout]
    if name in SORTED and layout == "batch, automatic":
        return None
    if of_layout.words and name in BY_FREQUENCY and operation == "log_probs":
        return ALL_WORDS_BYTES
    if operation == "top_k" and (of_layout.words or layout == "batch, automatic"):
        return ALL_WORDS_BYTES // 2  # of a block of tokens
    if of_layout.words and name == "letters":
        return VOCABULARY * SIZE * 4  # the vectors, of which the corrections are shared out
    if layout in ("batch, explicit", "batch, shard_map") and operation != "sample":
        return 0
    return LANES * TIME * 16  # some numbers a token


def check(name, layout, operation):
    """Checks values, the share of the work, and what is sent."""
    tried, of_layout = trial(name), layouts.LAYOUTS[layout]
    program, alone = tried.run(of_layout, operation), tried.alone(operation)
    if not (operation == "sample" and layout in ("batch, shard_map", "batch, pmap")):
        check_values(program, alone)  # there a key draws the same on all devices
    if layout == "batch, pmap":  # its program is that of one device, and what it sums its caller's
        return
    shares = SHARES.get(name, (0.3, 0.3))
    share = shares[of_layout.words]
    if layout == "batch, automatic":
        share = SORTED.get(name, share)
    assert program.flops <= share * alone.flops
    gathered = most_gathered(name, layout, operation)
    assert gathered is None or (
        program.largest("all-gather", "all-to-all", "collective-permute") <= gathered
    )
    sums = sum(c.times for c in program.collectives if c.kind == "all-reduce")
    if layout in ("batch, explicit", "batch, shard_map") and not tried.head.draws_noise:
        # One of all gradients, perhaps one of the loss.
        assert sums <= (2 if operation in ("weighted_loss", "loss") else 0)


CORE = (
    ("softmax", "batch, automatic", "weighted_loss"),
    ("softmax", "batch, explicit", "weighted_loss"),
    ("softmax", "batch, shard_map", "weighted_loss"),
    ("softmax", "words, automatic", "loss"),
    ("adaptive", "batch, explicit", "log_prob"),
    ("mixture", "batch and words, explicit", "log_prob"),
)


@pytest.mark.parametrize(("name", "layout", "operation"), CORE)
def test_layouts(name, layout, operation):
    check(name, layout, operation)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
@pytest.mark.parametrize("name", HEADS)
def test_every_head_in_every_layout(name, layout, operation):
    if HEADS[name].spells and operation not in ("weighted_loss", "loss", "log_prob"):
        pytest.skip("over all spellings, of which there is no end")
    check(name, layout, operation)


def test_every_head_is_laid_out():
    exported = {
        name
        for name in heads.__all__
        if isinstance(kind := getattr(heads, name), type) and issubclass(kind, heads.Head)
    }
    others = {"Head", "WithExpert", "SpreadUnknown"}  # which hand on what another head gives
    assert {type(head).__name__ for head in HEADS.values()} | others == exported


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
