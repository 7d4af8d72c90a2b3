"""What the CNN softmax has beyond the contract: sampled losses, caching, other lexicons."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.errors import UserError
from zoo.heads import NCE, CNNSoftmax, ImportanceSampling, Softmax, UniformNoise
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import Spelling

NETWORK = Convolution(Spelling(unit="characters"), letter_size=2, widths=(3,))
SIZE = 5


def problem(head, random):
    lexicon = examples.plain_lexicon()
    params = examples.random_params(head, random, SIZE, lexicon)
    return head.tables(lexicon), params, jnp.asarray(random.normal(size=(2, 3, SIZE)))


TARGETS = jnp.asarray([[0, 4, 12], [9, 10, 6]])
WEIGHTS = jnp.asarray([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])


@pytest.mark.usefixtures("float64")
@pytest.mark.slow
@pytest.mark.parametrize("correction", [0, 3])
def test_a_sampled_loss_is_that_of_the_computed_vectors(correction, random):
    sampled = NCE(noise=UniformNoise(), samples=4, noise_per="token", learned_partition=True)
    head = CNNSoftmax(NETWORK, correction, sampled)
    tables, params, hidden = problem(head, random)
    key = jax.random.key(3)

    def full_loss(params):
        vectors = head.vectors(params, tables)
        bias = jnp.broadcast_to(params["bias"], (13,))
        softmax_params = {
            "weights": vectors,
            "bias": bias,
            "log_partition": params["log_partition"],
        }
        return sampled.weighted_loss(
            softmax_params, tables["sampled"], hidden, TARGETS, WEIGHTS, key=key
        )

    def lookup_loss(params):
        return head.weighted_loss(params, tables, hidden, TARGETS, WEIGHTS, key=key)

    actual, expected = (jax.jit(jax.value_and_grad(f))(params) for f in (lookup_loss, full_loss))
    for leaf, expected_leaf in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-9, atol=1e-12)


def test_nce_starts_where_the_words_share_one_bias():
    head = CNNSoftmax(NETWORK, sampled=NCE(samples=4))
    params = head.init(jax.random.key(0), SIZE, examples.plain_lexicon())
    assert params["bias"].shape == ()
    np.testing.assert_allclose(params["bias"], -np.log(13), rtol=1e-6)
    assert head.loss_name == "NCE loss"
    assert CNNSoftmax(NETWORK).loss_name == "loss"


@pytest.mark.slow
def test_a_sampled_loss_may_have_no_bias():
    head = CNNSoftmax(NETWORK, sampled=ImportanceSampling(samples=4, bias=False))
    tables, params, hidden = problem(head, np.random.default_rng(0))
    key = jax.random.key(0)
    with_bias = dataclasses.replace(head, sampled=ImportanceSampling(samples=4))
    expected = with_bias.loss({**params, "bias": jnp.zeros(())}, tables, hidden, TARGETS, key=key)
    np.testing.assert_allclose(head.loss(params, tables, hidden, TARGETS, key=key), expected)


def test_no_vectors_are_drawn_for_words():
    head, lexicon = CNNSoftmax(NETWORK, sampled=NCE(samples=4)), examples.plain_lexicon()
    jaxpr = jax.make_jaxpr(lambda key: head.init(key, SIZE, lexicon))(jax.random.key(0))
    assert "f32[13]" in str(jaxpr)  # the bias
    assert "f32[13,1]" not in str(jaxpr)


def test_prepared_parameters_compute_no_vector():
    """The convolution's parameters could be anything."""
    head = CNNSoftmax(NETWORK)
    tables, params, hidden = problem(head, np.random.default_rng(0))
    prepared = jax.jit(head.prepared)(params, tables)
    broken = jax.tree.map(lambda x: x * jnp.nan, params), tables, hidden
    assert np.isnan(jax.jit(head.log_prob)(*broken, TARGETS)).all()
    key = jax.random.key(0)

    @jax.jit
    def evaluate(broken, prepared):
        return (
            head.log_prob(*broken, TARGETS, prepared=prepared),
            head.log_probs(*broken, prepared=prepared),
            head.top_k(*broken, 2, prepared=prepared)[0],
            head.sample(*broken, key, prepared=prepared),
        )

    *scores, words = evaluate(broken, prepared)
    assert all(np.isfinite(values).all() for values in scores)
    expected = jax.jit(head.sample)(params, tables, hidden, key)
    np.testing.assert_array_equal(words, expected)


@pytest.mark.usefixtures("float64")
def test_another_lexicon_has_words_in_another_order_and_new_ones(random):
    head = CNNSoftmax(NETWORK, 3)
    lexicon = examples.plain_lexicon()
    tables, params, hidden = problem(head, random)
    words = ("word 7", "d3 row", "word 0")
    new_lexicon = Lexicon(words, np.zeros(3, np.int64), alphabet=lexicon.letters)
    new_params = head.for_lexicon(params, lexicon, new_lexicon)
    vectors = jax.jit(head.vectors)(new_params, head.tables(new_lexicon))
    trained = jax.jit(head.vectors)(params, tables)
    np.testing.assert_allclose(vectors[0], trained[7], rtol=1e-10)
    np.testing.assert_allclose(vectors[2], trained[0], rtol=1e-10)
    spelled = references.convolution(NETWORK, params["network"], NETWORK.tables(new_lexicon), [1])
    np.testing.assert_allclose(vectors[1:2], spelled, rtol=1e-10)  # without a correction
    log_probs = jax.jit(head.log_probs)(new_params, head.tables(new_lexicon), hidden)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), np.ones((2, 3)), rtol=1e-10)
    assert CNNSoftmax(NETWORK).for_lexicon(params, lexicon, new_lexicon) is params


def test_word_heads_name_those_that_can():
    lexicon = examples.plain_lexicon()
    with pytest.raises(UserError, match=r"a Softmax has .* for the words .* heads\.CNNSoftmax or"):
        Softmax().for_lexicon({}, lexicon, lexicon)


def test_what_has_no_sampled_loss_is_refused():
    with pytest.raises(UserError, match="has no sampled loss"):
        CNNSoftmax(sampled=Softmax())
    with pytest.raises(UserError, match="correction of CNNSoftmax is -1"):
        CNNSoftmax(correction=-1)


def test_cut_words_are_counted():
    network = dataclasses.replace(NETWORK, spelling=Spelling(longest=6))
    assert CNNSoftmax(network).warnings(examples.plain_lexicon()) == {"words cut by the head": 3}
