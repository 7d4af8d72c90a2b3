"""Every kind of wrong argument to every head is an error that names it, and never a number."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.heads import test_checks_targets
from tests.marks import slow
from zoo import heads, priors
from zoo.data import with_background
from zoo.lexicon import Lexicon, with_features

SIZE, TOKENS = 5, 3
TRAINING_LEXICON, NEW_LEXICON = examples.trained_and_other()
NGRAM = heads.LogLinear(background=priors.KneserNey(order=2))
HEADS = test_checks_targets.HEADS | {
    "tied log-linear": heads.LogLinear(tied=True),
    "background": NGRAM,
}
# Most arguments are checked in one place for all heads: these have tables, letters, noise, words of
# another lexicon and a background of their own.
REPRESENTATIVES = (
    "softmax",
    "adaptive",
    "corrected letters",
    "NCE",
    "spread unknown",
    "background",
)
NAMES = [*REPRESENTATIVES, *slow(*sorted(HEADS.keys() - {*REPRESENTATIVES}))]
SMALL_LEXICON = with_features(examples.plain_lexicon(7), [{"a": 1.0}, {"b": 1.0}] + [{}] * 5)
OBJECTS = np.array([object()] * TOKENS)
# {argument: {what is wrong: what is given}}.
WRONG = {
    "hidden": {
        "whole numbers": jnp.ones((TOKENS, SIZE), int),
        "booleans": jnp.ones((TOKENS, SIZE), bool),
        "complex": jnp.ones((TOKENS, SIZE), complex),
        "objects": OBJECTS,
        "no axis": 1.0,
        "nothing": None,
        "text": "abc",
        "a dict": {"a": jnp.ones((TOKENS, SIZE))},
        "ragged": [[1.0, 2.0], [1.0]],
    },
    "targets": {
        "an axis more": jnp.zeros((TOKENS, 1), int),
        "one-hot": jnp.zeros((TOKENS, 13), int),
        "too few": jnp.zeros(2, int),
        "one": jnp.zeros(1, int),
        "no axis": 0,
        "floats": jnp.zeros(TOKENS),
        "booleans": jnp.zeros(TOKENS, bool),
        "objects": OBJECTS,
        "nothing": None,
        "words": ["a", "b", "c"],
        "ragged": [[1], [1, 2]],
    },
    "token_weights": {
        "too few": jnp.ones(2),
        "an axis more": jnp.ones((TOKENS, 1)),
        "an axis before": jnp.ones((1, TOKENS)),
        "complex": jnp.ones(TOKENS, complex),
        "objects": OBJECTS,
        "nothing": None,
        "text": "a",
        "a dict": {},
    },
    "params": {
        "nothing": None,
        "a list": [],
        "text": "weights",
        "wrapped": lambda params: {"params": params},
        "with more": lambda params: {**params, "surplus": jnp.ones(3)},
        "whole numbers": lambda params: jax.tree.map(lambda x: x.astype(int), params),
        "texts": lambda params: jax.tree.map(lambda x: "x", params),
        "with more axes": lambda params: jax.tree.map(lambda x: x[None], params),
    },
    "tables": {"nothing": None, "a list": [], "text": "words", "the lexicon": TRAINING_LEXICON},
}
KEYS = {
    "a number": 3,
    "a numpy number": np.int64(3),
    "floats": jnp.ones(2),
    "signed": jnp.zeros(2, jnp.int32),
    "three": jnp.zeros(3, jnp.uint32),
    "many": jax.random.split(jax.random.key(0), 3),
    "text": "key",
}


@functools.cache
def arguments(name):
    """(head, its arguments for three tokens), shapes alone of the parameters."""
    head = HEADS[name]
    lexicon = NEW_LEXICON if name == "spread unknown" else examples.lexicon()
    if head is NGRAM:
        lexicon = with_background(lexicon, head.background, [["word 1", "word 2"]])
    params = jax.eval_shape(lambda: head.init(jax.random.key(0), SIZE, lexicon))
    params = jax.tree.map(lambda x: jnp.ones(x.shape, x.dtype), params)
    if head.tied:
        words = not isinstance(head, heads.LogLinear)
        rows = len(lexicon) if words else len(lexicon.feature_names)
        params["weights"] = jnp.ones((rows, SIZE))
    inputs = {
        "params": params,
        "tables": head.tables(lexicon),
        "hidden": jnp.ones((TOKENS, SIZE)),
        "targets": jnp.zeros(TOKENS, int),
        "token_weights": jnp.ones(TOKENS),
        "key": jax.random.key(0),
    }
    if head.background is not None:
        tokens = jnp.zeros(TOKENS, int)
        inputs["context"] = tokens if name == "expert" else (tokens, tokens)
    return head, inputs


def refused(name, method, without=(), **wrong):
    """The error of a method that is given something wrong; it is a number's place that it takes."""
    head, inputs = arguments(name)
    inputs = {key: value for key, value in (inputs | wrong).items() if key not in without}
    with pytest.raises((ValueError, TypeError)) as error:
        jax.eval_shape(lambda: getattr(head, method)(**inputs))
    message = str(error.value)
    # Of the head itself, or of the one within.
    assert message.partition(":")[0].partition(".")[0] in vars(heads), message
    return message


@pytest.mark.parametrize("argument", WRONG)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_is_named(name, argument):
    _, inputs = arguments(name)
    for kind, value in WRONG[argument].items():
        wrong = value(inputs[argument]) if callable(value) else value
        message = refused(name, "weighted_loss", **{argument: wrong})
        stem = argument.partition("_")[0]
        assert stem in message or "tables" in message, (kind, message)


@pytest.mark.parametrize("name", NAMES)
def test_states_of_another_size_are_refused(name):
    for size in (1, SIZE + 2):
        assert "hidden" in refused(name, "weighted_loss", hidden=jnp.ones((TOKENS, size)))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_key_is_named(name):
    token_arguments = "targets", "token_weights"
    methods = {"sample": token_arguments} | (
        {"weighted_loss": ()} if HEADS[name].loss_draws else {}
    )
    for method, without in methods.items():
        for kind, key in KEYS.items():
            assert "key" in refused(name, method, without, key=key), (method, kind)
    assert "key is None: give a key, such as" in refused(name, "sample", token_arguments, key=None)


@pytest.mark.parametrize("name", NAMES)
def test_contexts_are_for_heads_with_a_background(name):
    if HEADS[name].background is None:
        context = jnp.zeros(TOKENS, int)
        assert "no background: leave context out" in refused(name, "weighted_loss", context=context)
        return
    for context in (None, jnp.zeros(TOKENS + 1, int), "abc"):
        assert "context" in refused(name, "weighted_loss", context=context)


@pytest.mark.parametrize("name", ["softmax", "log-linear", "letters", "mixture", "expert"])
def test_prepared_arrays_of_others_are_refused(name):
    for prepared in (jnp.ones((7, SIZE)), (jnp.ones((7, SIZE)), jnp.ones(7)), {"a": jnp.ones(3)}):
        assert "prepared" in refused(name, "log_prob", ("token_weights", "key"), prepared=prepared)


@pytest.mark.parametrize(
    ("name", "array"), [("softmax", "bias"), ("mixture", "projection_bias"), ("speller", "bias")]
)
def test_parameters_of_other_sizes_are_named(name, array):
    _, inputs = arguments(name)
    params = {**inputs["params"], array: inputs["params"][array][:-1]}
    assert f"params['{array}']" in refused(name, "weighted_loss", params=params)


@pytest.mark.parametrize("name", ["adaptive", "NCE", "Huffman", "log-linear", "letters"])
def test_tables_that_were_cast_are_named(name):
    _, inputs = arguments(name)
    tables = jax.tree.map(lambda x: x.astype(float), inputs["tables"])
    assert "give whole numbers" in refused(name, "weighted_loss", tables=tables)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_there_is_named(name):
    head, inputs = arguments(name)
    for group in ("params", "tables"):
        for missing in inputs[group]:
            incomplete = {key: value for key, value in inputs[group].items() if key != missing}
            if group == "tables" and not loss_reads(head, missing):
                continue
            message = refused(name, "weighted_loss", **{group: incomplete})
            assert f"{group} have no '{missing}" in message


def loss_reads(head, table):
    """Whether the loss reads a table whatever the form of the scores; a head of letters that are
    drawn has no tables of words."""
    shapes = head.array_shapes
    return table in {path.partition("/")[0] for path in (*shapes.tables, *shapes.loss_tables)}


@pytest.mark.parametrize("name", NAMES)
def test_lexicons_sizes_and_keys_of_init(name):
    head, key = HEADS[name], jax.random.key(0)
    for lexicon in (["a", "b"], None, 13):
        for make in (head.tables, head.partition, lambda words: head.init(key, SIZE, words)):
            with pytest.raises(TypeError, match=r"^\w+\.\w+: lexicon is a \w+: give a zoo\.lexi"):
                make(lexicon)
    for size, error in ((None, TypeError), (2.0, TypeError), (True, TypeError), (0, ValueError)):
        with pytest.raises(error, match=r"^\w+\.init: hidden_size is .*: give"):
            head.init(key, size, examples.lexicon())
    with pytest.raises(TypeError, match=r"^\w+\.init: key is 0: give a key"):
        head.init(0, SIZE, examples.lexicon())


@pytest.mark.parametrize("k", [0, -1, 14, 2.0, None, "3", True, jnp.array(2)])
def test_what_is_no_number_of_words(k):
    for name in ("softmax", "mixture", "adaptive", "NCE", "Huffman"):
        head, inputs = arguments(name)
        inputs = {key: inputs[key] for key in ("params", "tables", "hidden")}
        with pytest.raises((ValueError, TypeError), match=r"^k is .*: give (1 to 13|a Python)"):
            jax.eval_shape(functools.partial(head.top_k, k=k), **inputs)


def test_what_is_no_distribution():
    head, inputs = arguments("softmax")
    distribution = heads.Distribution(head, inputs["params"], {}, inputs["hidden"])
    with pytest.raises(TypeError, match=r"^entropy: p is a tuple: give heads"):
        heads.entropy(tuple(distribution))
    with pytest.raises(TypeError, match=r"^kl_divergence: q is a NoneType: give heads"):
        heads.kl_divergence(distribution, None)


def test_a_subclass_with_parameters_of_its_own_is_let_alone():
    class Sharp(heads.Softmax):
        def _init(self, key, hidden_size, lexicon):
            return super()._init(key, hidden_size, lexicon) | {"sharpness": jnp.ones(())}

    params = Sharp().init(jax.random.key(0), SIZE, examples.lexicon())
    hidden, targets = jnp.ones((TOKENS, SIZE)), jnp.zeros(TOKENS, int)
    losses = jax.eval_shape(Sharp().loss, params, {}, hidden, targets)
    assert losses.shape == (TOKENS,)


# ---- what errors say, each before anything is computed

# (head, wrong arguments of its loss, the error, the beginning of its message)
ADAPTIVE, NCE, NO_TABLES = heads.AdaptiveSoftmax(cutoffs=(3,)), heads.NCE(samples=4), {"tables": {}}
MESSAGES = [
    (
        heads.Softmax(),
        {"hidden": jnp.ones((3, 7))},
        ValueError,
        r": hidden states have 7 numbers, and params\['weights'\] of the shape \(13, 5",
    ),
    (
        heads.Softmax(),
        {"hidden": np.ones((3, 5), int)},
        ValueError,
        ": hidden states are floating-",
    ),
    (
        ADAPTIVE,
        {"targets": jnp.zeros((3, 1), jnp.int32)},
        ValueError,
        r": hidden states of the shape \(3, 5\) need targets of the shape \(3,",
    ),
    (
        heads.Softmax(tied=True),
        {},
        TypeError,
        ": params have no 'weights': give a tied head the embedding's table",
    ),
    (
        ADAPTIVE,
        NO_TABLES,
        TypeError,
        ": tables have no 'rank': give the results of this head's `init` and",
    ),
    (NCE, NO_TABLES, TypeError, ": tables have no 'log_q': .* not `evaluation_tables`"),
    (NCE, {"key": None}, ValueError, " draws noise words: give it a key"),
    (
        NGRAM,
        {"tables": heads.LogLinear().tables(examples.lexicon()) | {"background": {}}},
        TypeError,
        ": the head's KneserNey needs the words before each position: give context=",
    ),
    *(
        (head, wrong, TypeError, message)
        for head in (heads.Softmax(), heads.LogLinear())
        for wrong, message in (
            ({"params": None}, ": params is None: give the result of this head's `init`"),
            ({"tables": None}, ": tables is None: give the result of this head's `tables`"),
            ({"hidden": None}, ": hidden is None: give floating-point numbers"),
            ({"targets": None}, ": targets is None: give word ids"),
            ({"targets": ["the", "cat", "sat"]}, ": targets is text: give word ids"),
            (
                {"params": {"params": {}}},
                ": params have 'params', which this head does not have: give",
            ),
            ({"params": {}}, ": params have no 'weights': give the results of this head's `init`"),
        )
    ),
]


@pytest.mark.parametrize(("head", "wrong", "error", "message"), MESSAGES)
def test_messages_before_anything_is_computed(head, wrong, error, message):
    inputs = {
        "params": jax.eval_shape(lambda: head.init(jax.random.key(0), SIZE, examples.lexicon())),
        "tables": {} if "tables" in wrong else head.tables(examples.lexicon()),
        "hidden": jnp.ones((3, SIZE)),
        "targets": jnp.zeros(3, jnp.int32),
        "key": jax.random.key(0),
        **wrong,
    }
    with pytest.raises(error, match=rf"^{type(head).__name__}\.loss{message}"):
        head.loss(**inputs)


# What a head counts of the lexicon that its parameters and tables are of.
UNITS = {
    **dict.fromkeys(("NCE", "adaptive", "Huffman", "corrected letters"), "words"),
    **dict.fromkeys(("log-linear", "expert"), "features"),
    "hierarchical": "classes of words",
}


@pytest.mark.parametrize("name", UNITS)
def test_tables_of_another_lexicon_are_refused(name):
    message = refused(name, "weighted_loss", tables=HEADS[name].tables(SMALL_LEXICON))
    pattern = rf"params are of \d+ {UNITS[name]} and tables of \d+: give params and tables of one"
    assert re.search(pattern, message), message


def test_a_background_that_was_not_prepared():
    letters = Lexicon(words=("|", "a"), counts=np.array([1, 1]), boundary="a")
    for background, lexicon in (
        (NGRAM.background, examples.lexicon()),
        (priors.Evidence(), letters),
    ):
        name = type(background).__name__
        with pytest.raises(ValueError, match=rf"{name} is not prepared: .* zoo\.data\.with_back"):
            background.tables(lexicon)
