"""What a head is wrongly given is told in the words of whoever gave it, while it is traced."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo import heads, priors
from zoo.errors import UserError
from zoo.lexicon import Lexicon

SIZE = 5
LEXICON = examples.lexicon()
NGRAM = heads.LogLinear(background=priors.NGram(order=2))
# (head, method, what is given in the place of what should be, error, its beginning)
CASES = {
    "hidden states of another size": (
        heads.Softmax(),
        "loss",
        {"hidden": jnp.ones((3, 7))},
        ValueError,
        r"Softmax.loss: hidden states have 7 numbers, and params\['weights'\] of the shape \(13, 5",
    ),
    "hidden states of another size, of a mixture": (
        heads.MixtureOfSoftmaxes(),
        "log_prob",
        {"hidden": jnp.ones((3, 7))},
        ValueError,
        r"MixtureOfSoftmaxes.log_prob: hidden states have 7 numbers, and params\['pr",
    ),
    "whole numbers for states": (
        heads.Softmax(),
        "loss",
        {"hidden": jnp.ones((3, SIZE), jnp.int32)},
        ValueError,
        r"Softmax.loss: hidden states are floating-point numbers",
    ),
    "targets of another shape": (
        heads.AdaptiveSoftmax(cutoffs=(3,)),
        "loss",
        {"targets": jnp.zeros((3, 1), jnp.int32)},
        ValueError,
        r"AdaptiveSoftmax.loss: hidden states of the shape \(3, 5\) need targets of the shape \(3,",
    ),
    "a tied head alone": (
        heads.Softmax(tied=True),
        "loss",
        {},
        TypeError,
        r"Softmax.loss: params have no 'weights': give a tied head the embedding's table",
    ),
    "no tables": (
        heads.AdaptiveSoftmax(cutoffs=(3,)),
        "loss",
        {"tables": {}},
        TypeError,
        r"AdaptiveSoftmax.loss: tables have no 'rank': give the results of this head's `init` and",
    ),
    "tables without noise": (
        heads.NCE(samples=4),
        "loss",
        {"tables": {}},
        TypeError,
        r"NCE.loss: tables have no 'log_q': .* not `evaluation_tables`",
    ),
    "noise of another lexicon": (
        heads.NCE(samples=4),
        "loss",
        {"tables": heads.NCE(samples=4).tables(examples.plain_lexicon(7))},
        ValueError,
        r"NCE.loss: params are of 13 words and tables of 7: give params and tables of one lexicon",
    ),
    "no noise": (
        heads.NCE(samples=4),
        "loss",
        {"key": None},
        ValueError,
        r"NCE.loss draws noise words: give it a key",
    ),
    "no context": (
        NGRAM,
        "loss",
        {"tables": heads.LogLinear().tables(LEXICON) | {"background": {}}},
        TypeError,
        r"LogLinear.loss: the head's NGram needs the words before each position: give context=",
    ),
}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"params": None}, r"params is None: give the result of this head's `init`"),
        ({"tables": None}, r"tables is None: give the result of this head's `tables`"),
        ({"hidden": None}, r"hidden is None: give floating-point numbers"),
        ({"targets": None}, r"targets is None: give word ids"),
        ({"targets": ["the", "cat", "sat"]}, r"targets is text: give word ids"),
        (
            {"params": {"params": {}}},
            r"params have 'params', which this head does not have: give",
        ),
        ({"params": {}}, r"params have no 'weights': give the results of this head's `init`"),
    ],
)
@pytest.mark.parametrize("head", [heads.Softmax(), heads.LogLinear()])
def test_what_is_nothing_is_named(head, wrong, message):
    given = {
        "params": jax.eval_shape(lambda: head.init(jax.random.key(0), SIZE, LEXICON)),
        "tables": head.tables(LEXICON),
        "hidden": jnp.ones((3, SIZE)),
        "targets": jnp.zeros(3, jnp.int32),
    } | wrong
    with pytest.raises(TypeError, match=rf"^{type(head).__name__}\.\w+: {message}"):
        head.log_prob(**given)


@pytest.mark.parametrize("key", [None, 0])
def test_what_is_no_key_is_named(key):
    head = heads.Softmax()
    params = head.init(jax.random.key(0), SIZE, LEXICON)
    with pytest.raises(TypeError, match=rf"^Softmax\.sample: key is {key}: give a key, such as"):
        head.sample(params, {}, jnp.ones((3, SIZE)), key)
    with pytest.raises(TypeError, match=r"token_weights is None: give numbers that broadcast"):
        head.weighted_loss(params, {}, jnp.ones((3, SIZE)), jnp.zeros(3, jnp.int32), None)


@pytest.mark.parametrize("case", CASES)
def test_it_is_named_at_trace_time(case):
    head, method, wrong, error, message = CASES[case]
    given = {
        "params": jax.eval_shape(lambda: head.init(jax.random.key(0), SIZE, LEXICON)),
        "tables": {} if "tables" in wrong else head.tables(LEXICON),
        "hidden": jnp.ones((3, SIZE)),
        "targets": jnp.zeros(3, jnp.int32),
        **({"key": jax.random.key(0)} if method == "loss" else {}),
        **wrong,
    }
    with pytest.raises(error, match=f"^{message}"):
        jax.eval_shape(functools.partial(getattr(head, method)), **given)


@pytest.mark.parametrize("head", [heads.Softmax(), heads.HuffmanSoftmax()])
@pytest.mark.parametrize("k", [0, 14, 2.5])
def test_more_words_than_there_are(head, k):
    params = head.init(jax.random.key(0), SIZE, LEXICON)
    with pytest.raises(ValueError, match=f"k is {k}, and there are 13 words: give 1 to 13"):
        head.top_k(params, head.tables(LEXICON), jnp.ones((2, SIZE)), k)


def test_a_background_that_was_not_prepared():
    with pytest.raises(ValueError, match=r"NGram is not prepared: .* zoo\.data\.with_background"):
        NGRAM.tables(LEXICON)
    evidence = heads.LogLinear(background=priors.Evidence())
    letters = Lexicon(words=("|", "a"), counts=np.array([1, 1]), boundary="a")
    known = dataclasses.replace(LEXICON, words=LEXICON.words)
    assert not letters.background_tables and not known.background_tables
    with pytest.raises(ValueError, match="Evidence is not prepared"):
        evidence.background.tables(letters)


def test_fields_are_named_by_their_component():
    with pytest.raises(UserError, match=r"^noise_per of NCE is 'word': give one of batch, row"):
        heads.NCE(noise_per="word")
    with pytest.raises(UserError, match=r"^samples of BlackOut is 0: give at least 1"):
        heads.BlackOut(samples=0)
    with pytest.raises(UserError, match=r"^cutoffs of AdaptiveSoftmax are"):
        heads.AdaptiveSoftmax(cutoffs=())
    with pytest.raises(UserError, match=r"^smoothing of UnigramNoise is -1: give at least 0"):
        heads.UnigramNoise(smoothing=-1)
