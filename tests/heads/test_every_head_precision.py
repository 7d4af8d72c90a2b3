"""Parameters and hidden states in bfloat16: probabilities are float32, and sum to one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.heads.test_every_head import HEADS
from tests.heads.test_with_expert import StubExpert
from tests.marks import slow
from zoo.heads import (
    AdaptiveSoftmax,
    CharLSTM,
    HierarchicalSoftmax,
    LogLinear,
    MixtureOfContexts,
    MixtureOfSoftmaxes,
    Softmax,
    WithExpert,
)
from zoo.lexicon import with_features
from zoo.lexicon.spelling import Spelling

SIZE = 7
SPELLED = CharLSTM(Spelling(unit="characters", longest=8), size=6, letter_size=3, renormalised=True)
CLOSED = {name: case.head for name, case in HEADS.items()} | {
    "CharLSTM": SPELLED,
    "WithExpert": WithExpert(StubExpert(), Softmax()),
    "WithExpert of letters": WithExpert(StubExpert(), SPELLED),
}
# A table of these for all of them as targets is more than blocks of the vocabulary are as large as.
VOCABULARY = 1800
LARGE = {
    "softmax": Softmax(),
    "log-linear": LogLinear(),
    "adaptive": AdaptiveSoftmax(cutoffs=(3, 800), division=2),
    "hierarchical": HierarchicalSoftmax(),
    "mixture": MixtureOfSoftmaxes(components=2),
    "contexts": MixtureOfContexts(components=2),
}


def rounded(tree):
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree)


def sums(head, lexicon, random, convert_params, convert_hidden):
    """(sum of exp(log_probs), of exp(log_prob) of each word), both by numpy in float64."""
    count, tables = len(lexicon), head.tables(lexicon)
    params = examples.random_params(head, random, SIZE, lexicon)
    if head.tied:
        params["weights"] = jnp.asarray(random.normal(size=(count, SIZE)))
    params = convert_params(jax.tree.map(lambda x: x.astype(jnp.float32), params))
    hidden = convert_hidden(jnp.asarray(random.normal(size=SIZE), jnp.float32))

    @jax.jit
    def evaluate(params, tables, hidden):
        def context_options(*shape):
            return {} if head.background is None else {"context": jnp.full(shape, 2)}

        log_probs = head.log_probs(params, tables, hidden, **context_options())
        states, words = jnp.broadcast_to(hidden, (count, SIZE)), jnp.arange(count)
        return log_probs, head.log_prob(params, tables, states, words, **context_options(count))

    results = evaluate(params, tables, hidden)
    assert [array.dtype for array in results] == [jnp.float32] * 2
    return [np.exp(np.asarray(array, np.float64)).sum() for array in results]


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.slow
def test_probabilities_sum_to_one(name, random):
    np.testing.assert_allclose(
        sums(CLOSED[name], examples.lexicon(), random, rounded, rounded), 1, atol=1e-5
    )


@pytest.mark.parametrize("name", ["mixture", *slow("contexts", "CharLSTM")])
@pytest.mark.parametrize(
    ("convert_params", "convert_hidden"), [(rounded, jnp.asarray), (dict, rounded)]
)
def test_one_of_the_two_in_bfloat16(name, random, convert_params, convert_hidden):
    np.testing.assert_allclose(
        sums(CLOSED[name], examples.lexicon(), random, convert_params, convert_hidden), 1, atol=1e-5
    )


@pytest.mark.parametrize(
    "name", ["log-linear", "adaptive", "mixture", *slow("softmax", "hierarchical", "contexts")]
)
def test_in_blocks_they_sum_to_one(name, random):
    plain = examples.plain_lexicon(VOCABULARY)
    lexicon = with_features(plain, [{f"own {n % 601}": 1.0, "all": 0.3} for n in range(VOCABULARY)])
    np.testing.assert_allclose(sums(LARGE[name], lexicon, random, rounded, rounded), 1, atol=1e-5)


def test_a_mixture_is_that_of_the_rounded_parameters(random):
    """The components' weights are not rounded again: they were wrong in the third place."""
    head, lexicon = MixtureOfSoftmaxes(components=3), examples.plain_lexicon()
    params = rounded(examples.random_params(head, random, SIZE, lexicon, scale=0.5))
    hidden = rounded(jnp.asarray(random.normal(size=(4, SIZE)), jnp.float32))
    log_prior, contexts = head.contexts(params, hidden)
    assert (log_prior.dtype, contexts.dtype) == (jnp.float32, jnp.float32)
    wide = {name: np.asarray(array, np.float64) for name, array in params.items()}
    scores = np.asarray(hidden, np.float64) @ wide["prior"]
    for log_p, row in zip(log_prior, scores, strict=True):
        np.testing.assert_allclose(log_p, row - references.log_sum_exp(row), atol=1e-5)


@pytest.mark.slow
def test_letters_are_near_float32_and_both_ways_to_read_a_spelling_agree(random):
    """They were off by 0.08 nats, by which the two ways differed too."""
    head, lexicon = dataclasses.replace(SPELLED, size=16), examples.plain_lexicon(40)
    params = rounded(examples.random_params(head, random, SIZE, lexicon, scale=0.7))
    hidden = rounded(jnp.asarray(random.normal(size=(3, SIZE)), jnp.float32))
    wide = jax.tree.map(lambda x: x.astype(jnp.float32), (params, hidden))
    targets, tables = jnp.asarray([0, 17, 39]), head.tables(lexicon)
    judge = jax.jit(head.log_prob)
    log_prob = judge(params, tables, hidden, targets)
    np.testing.assert_allclose(log_prob, judge(wide[0], tables, wide[1], targets), atol=0.01)
    by_prefixes = jax.jit(head.log_probs)(params, tables, hidden)
    by_prefixes = jnp.take_along_axis(by_prefixes, targets[:, None], axis=-1)[:, 0]
    np.testing.assert_allclose(by_prefixes, log_prob, atol=1e-5)
    gradient = jax.grad(lambda params: head.loss(params, tables, hidden, targets).sum())
    shapes = jax.eval_shape(gradient, params)
    assert {x.dtype for x in jax.tree.leaves(shapes)} == {jnp.dtype(jnp.bfloat16)}
