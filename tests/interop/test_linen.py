"""Linen modules hand their variables to heads, embeddings and cores, and compute nothing else."""

import dataclasses
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.heads import head_references
from zoo import cores, embeddings, heads, priors
from zoo.data.encoded_text import EncodedText
from zoo.interop import linen

SIZE = 5
HIDDEN = jnp.asarray(np.random.default_rng(3).normal(size=(2, 3, SIZE)), jnp.float32)
TARGETS = jnp.array([[0, 4, 12], [9, 10, 6]])
WEIGHTS = jnp.array([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])
HEADS = {
    "softmax": heads.Softmax(),
    "log-linear": heads.LogLinear(penalty=0.1),
    "sampled": heads.NCE(samples=4, learned_partition=True),
    "mixture": heads.MixtureOfSoftmaxes(components=2, size=3),
    # A parameter called "head", as the field of the module; a tree of parameters in a parameter.
    "adaptive": heads.AdaptiveSoftmax(cutoffs=(3, 8)),
    "letters": heads.CNNSoftmax(head_references.NETWORK),
}


def initialised(module, *inputs):
    """The variables of a module by the key 0, from one program."""
    return jax.jit(module.init)(jax.random.key(0), *inputs)


def assert_same_trees(actual, expected):
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


class Model(nn.Module):
    """What one writes: a head in place of a Dense, in a compact method."""

    head: heads.Head
    lexicon: object

    @nn.compact
    def __call__(self, hidden, targets, token_weights):
        head = linen.Head(self.head, self.lexicon, name="head")
        return head.weighted_loss(hidden, targets, token_weights), head.log_prob(hidden, targets)


@pytest.mark.parametrize("name", HEADS)
def test_variables_are_those_of_the_head(name, lexicon):
    head = HEADS[name]

    def init(key):
        return Model(head, lexicon).init(key, HIDDEN, TARGETS, WEIGHTS)

    variables = jax.eval_shape(init, jax.random.key(0))
    params = jax.eval_shape(lambda key: head.init(key, SIZE, lexicon), jax.random.key(0))
    assert jax.tree.map(jnp.shape, variables["params"]["head"]) == jax.tree.map(jnp.shape, params)
    tables = jax.tree.map(jnp.shape, head.tables(lexicon))
    expected = {"head": {"arrays": tables}} if tables else {}
    assert jax.tree.map(jnp.shape, variables.get("tables", {})) == expected


def test_a_module_is_its_head(lexicon):
    head, rngs = HEADS["sampled"], {"noise": jax.random.key(7)}
    model = Model(head, lexicon)
    variables = initialised(model, HIDDEN, TARGETS, WEIGHTS)
    params, tables = variables["params"]["head"], variables["tables"]["head"]["arrays"]
    assert_same_trees(tables, head.tables(lexicon))

    def loss(params):
        return model.apply({**variables, "params": params}, HIDDEN, TARGETS, WEIGHTS, rngs=rngs)

    step = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (value, log_prob), gradient = step(variables["params"])
    key = KeyOf().apply({}, rngs=rngs)
    arguments = params, tables, HIDDEN, TARGETS
    expected, expected_gradient = jax.jit(jax.value_and_grad(head.weighted_loss))(
        *arguments, WEIGHTS, key=key
    )
    np.testing.assert_array_equal(value, expected)
    assert_same_trees(gradient["head"], expected_gradient)
    np.testing.assert_array_equal(log_prob, jax.jit(head.log_prob)(*arguments))


class KeyOf(nn.Module):
    """The key that a module called "head" within another gets of the stream "noise"."""

    @nn.compact
    def __call__(self):
        return Noise(name="head")()


class Noise(nn.Module):
    def __call__(self):
        return self.make_rng("noise")


def test_parameters_are_those_of_init_bit_for_bit(lexicon):
    keys = []

    @dataclasses.dataclass(frozen=True)
    class Recorded(heads.Softmax):
        def _init(self, key, hidden_size, lexicon):
            if not isinstance(key, jax.core.Tracer):
                keys.append(key)
            return super()._init(key, hidden_size, lexicon)

    variables = linen.Head(Recorded(), lexicon).init(jax.random.key(3), HIDDEN)
    (key,) = keys  # once for all parameters
    assert_same_trees(variables["params"], heads.Softmax().init(key, SIZE, lexicon))


@pytest.mark.parametrize(
    "method",
    [
        *("__call__", "log_probs", "loss", "log_prob", "log_prob_and_log_z", "top_k"),
        *("sample", "statistics", "word_log_probs"),
        *("weighted_loss_and_penalty", "weighted_loss_and_report"),
    ],
)
def test_methods_can_be_named(method, lexicon):
    head = HEADS["log-linear"]
    module = linen.Head(head, lexicon)
    variables = initialised(module, HIDDEN)
    arguments = {"top_k": (2,), "sample": (jax.random.key(1),), "__call__": (), "log_probs": ()}
    arguments |= {f"weighted_loss_and_{x}": (TARGETS, WEIGHTS) for x in ("penalty", "report")}
    arguments |= {"word_log_probs": (jnp.stack([TARGETS, TARGETS], axis=-1),)}
    arguments = arguments.get(method, (TARGETS,))
    function = getattr(head, "log_probs" if method == "__call__" else method)

    @jax.jit
    def evaluate(variables, tables):
        result = module.apply(variables, HIDDEN, *arguments, method=method)
        return result, function(variables["params"], tables, HIDDEN, *arguments)

    assert_same_trees(*evaluate(variables, head.tables(lexicon)))


@pytest.mark.slow
def test_what_is_prepared_is_taken(lexicon):
    module = linen.Head(HEADS["letters"], lexicon)
    variables = module.init(jax.random.key(0), HIDDEN)
    prepared = module.apply(variables, method="prepared")
    assert prepared.shape == (13, SIZE)
    log_probs = module.apply(variables, HIDDEN, prepared=2 * prepared, method="log_probs")
    expected = jax.nn.log_softmax(HIDDEN @ (2 * prepared).T)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-6)


class Tied(nn.Module):
    lexicon: object
    bias: bool = True

    def setup(self):
        self.embedding = linen.Embedding(embeddings.Lookup(SIZE), self.lexicon)
        self.core = linen.Core(cores.LSTM(SIZE, dropout=0.5))
        self.head = linen.Head(heads.Softmax(tied=True, bias=self.bias), self.lexicon)

    def __call__(self, words):
        hidden, _ = self.core(self.embedding(words))
        return self.head(hidden, tied_weights=self.embedding.tied_weights())


@pytest.mark.parametrize("bias", [True, False])
def test_embedding_core_and_tied_head(lexicon, bias):
    module = Tied(lexicon, bias)
    variables = initialised(module, TARGETS)
    params = {"head": {}, **variables["params"]}
    assert params["head"].keys() == ({"bias"} if bias else set())
    embedding, core = embeddings.Lookup(SIZE), cores.LSTM(SIZE, dropout=0.5)

    @jax.jit
    def evaluate(variables, params):
        inputs = embedding.apply(params["embedding"], {}, TARGETS)
        hidden, _ = core.apply((params["core"]["0"],), inputs, core.initial_carry(2))
        head_params = {**params["head"], "weights": params["embedding"]["table"]}
        expected = heads.Softmax(tied=True, bias=bias).log_probs(head_params, {}, hidden)
        dropped = module.apply(variables, TARGETS, rngs={"dropout": jax.random.key(1)})
        return module.apply(variables, TARGETS), expected, dropped

    result, expected, dropped = evaluate(variables, params)
    np.testing.assert_array_equal(result, expected)
    assert np.abs(dropped - expected).max() > 1e-5


def test_dropout_can_be_left_out():
    module, inputs = linen.Core(cores.LSTM(4, dropout=0.5)), HIDDEN
    variables, apply = (
        initialised(module, inputs),
        jax.jit(module.apply, static_argnames="deterministic"),
    )
    plain, _ = apply(variables, inputs)
    rngs = {"dropout": jax.random.key(1)}
    hidden, _ = apply(variables, inputs, deterministic=True, rngs=rngs)
    np.testing.assert_array_equal(hidden, plain)


class WithBackground(nn.Module):
    head: heads.Head
    lexicon: object

    @nn.compact
    def __call__(self, words, hidden, targets):
        head = linen.Head(self.head, self.lexicon, name="head")
        context, carry = head.context_of(words)
        return head.log_prob(hidden, targets, context=context), carry


@pytest.mark.slow
def test_a_background_runs_along(lexicon):
    words = np.array([1, 4, 2, 2, 4, 1, 9, 12, 3], np.int32)
    background = priors.KneserNey(order=2)
    text = EncodedText(words, np.ones(9, bool), np.ones(9, bool), np.array([0]))
    prepared = background.prepare(lexicon, {"train": text})
    prepared_lexicon = dataclasses.replace(lexicon, background_tables=prepared)
    head = heads.LogLinear(initial_scale=0.0, background=background)
    module, before = WithBackground(head, prepared_lexicon), jnp.array([[1, 4, 2], [4, 1, 9]])
    variables = module.init(jax.random.key(0), before, HIDDEN, TARGETS)
    log_prob, carry = module.apply(variables, before, HIDDEN, TARGETS)
    tables = head.tables(prepared_lexicon)
    context, expected = background.apply(tables["background"], before, background.initial_carry(2))
    assert_same_trees(carry, expected)
    np.testing.assert_allclose(
        log_prob, background.log_prob(tables["background"], context, TARGETS), rtol=1e-5
    )


def test_axes_have_the_names_of_the_project(lexicon):
    axes = {"words": "vocab", "hidden": "embed"}
    module = linen.Head(heads.AdaptiveSoftmax(cutoffs=(3, 8)), lexicon, axes=axes)
    variables = initialised(module, HIDDEN)
    specs = nn.get_partition_spec(variables)["params"]
    assert tuple(specs["head"]) == ("vocab", "embed")
    assert tuple(specs["projection_0"]) == ("embed", None)
    assert tuple(specs["tail_1"]) == ("vocab", None)
    plain = initialised(linen.Head(module.head, lexicon), HIDDEN)
    assert_same_trees(nn.unbox(variables), plain)
    apply = jax.jit(module.apply)
    np.testing.assert_array_equal(apply(variables, HIDDEN), apply(plain, HIDDEN))
    with pytest.raises(ValueError, match="axes has 'vocab'"):
        linen.Head(heads.Softmax(), lexicon, axes={"vocab": "model"}).init(
            jax.random.key(0), HIDDEN
        )


def test_types_can_be_chosen(lexicon):
    module = linen.Head(heads.Softmax(), lexicon, dtype=jnp.bfloat16, param_dtype=jnp.bfloat16)
    variables = initialised(module, HIDDEN)
    assert {x.dtype for x in jax.tree.leaves(variables)} == {jnp.dtype(jnp.bfloat16)}
    params = heads.Softmax().init(jax.random.key(0), SIZE, lexicon)
    log_probs = linen.Head(heads.Softmax(), lexicon, dtype=jnp.bfloat16).apply(
        {"params": params}, HIDDEN
    )
    assert log_probs.dtype == jnp.float32  # summed in full
    in_half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), (params, HIDDEN))
    assert_same_trees(log_probs, heads.Softmax().log_probs(in_half[0], {}, in_half[1]))


@pytest.mark.parametrize(
    ("head", "change", "error", "message"),
    [
        (
            "log-linear",
            lambda v: {"params": v["params"]},
            ValueError,
            "the collection 'tables'",
        ),
        (
            "softmax",
            lambda v: {"params": {**v["params"], "bias": jnp.zeros(12)}},
            ValueError,
            r"the parameter bias has the shape \(12,\), and these inputs need \(13,\)",
        ),
    ],
)
def test_what_is_not_given_is_named(head, change, error, message, lexicon):
    module = linen.Head(HEADS[head], lexicon)
    variables = initialised(module, HIDDEN)
    with pytest.raises(error, match=message):
        module.apply(change(variables), HIDDEN)


def test_ties_and_contexts_that_are_none(lexicon):
    key = jax.random.key(0)
    with pytest.raises(TypeError, match=re.escape("Softmax(tied=True) shares the embedding's")):
        linen.Head(heads.Softmax(tied=True), lexicon).init(key, HIDDEN)
    with pytest.raises(TypeError, match="takes no tied_weights"):
        linen.Head(heads.Softmax(), lexicon).init(key, HIDDEN, tied_weights=jnp.zeros((13, SIZE)))
    module = linen.Head(heads.Softmax(), lexicon)
    with pytest.raises(TypeError, match="Softmax has no background"):
        module.apply(initialised(module, HIDDEN), TARGETS, method="context_of")


class WithMemory(nn.Module):
    lexicon: object

    @nn.compact
    def __call__(self, words, hidden, targets, reset=None):
        head = linen.Head(heads.WithCache(heads.Softmax(), size=2), self.lexicon, name="head")
        context, _ = head.context_of(words, reset=reset, hidden=hidden)
        with pytest.raises(TypeError, match="the background is a Memory: give hidden="):
            head.context_of(words)
        return head.log_prob(hidden, targets, context=context)


def test_a_cache_runs_along(lexicon):
    words, module = jnp.array([[1, 4, 2], [4, 1, 9]]), WithMemory(lexicon)
    variables = initialised(module, words, HIDDEN, TARGETS)
    head, params = heads.WithCache(heads.Softmax(), size=2), variables["params"]["head"]
    memory, log_probs = head.background, []

    @jax.jit
    def evaluate(variables, params, tables, reset):
        carry = memory.initial_carry(2, SIZE)
        context, _ = memory.apply({}, words, carry, reset=reset, hidden=HIDDEN)
        expected = head.log_prob(params, tables, HIDDEN, TARGETS, context=context)
        return module.apply(variables, words, HIDDEN, TARGETS, reset), expected

    for reset in (None, jnp.array([[False, False, True], [False, True, False]])):
        result, expected = evaluate(variables, params, head.tables(lexicon), reset)
        log_probs.append(result)
        np.testing.assert_allclose(log_probs[-1], expected, rtol=1e-5)
    assert (log_probs[0] != log_probs[1]).any()
