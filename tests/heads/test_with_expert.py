"""One feature more, on the words of an expert, against the dense formula in numpy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples, references
from tests.marks import slow
from zoo.errors import UserError
from zoo.heads import CharLSTM, LogLinear, Softmax, WithExpert
from zoo.lexicon.spelling import Spelling
from zoo.losses import log_expert_mass
from zoo.priors import KneserNey
from zoo.priors.experts import NOTHING, Expert

SIZE, VOCABULARY = 5, 13
# The expert knows nothing at one place, is right at two and has word 9, without mass, at another.
CONTEXTS = np.array([[3, NOTHING, 12], [7, 9, 6]])
# Repeats, nothing at all, and gaps: what a question or the last words may name.
WORD_SETS = np.array(
    [
        [[3, NOTHING, 3, 5], [NOTHING] * 4, [12, 4, NOTHING, NOTHING]],
        [[7, 8, 9, 10], [NOTHING, 10, 10, 10], [0, 1, 2, 3]],
    ]
)
TARGETS = np.array([[0, 4, 12], [8, 10, 6]])
WEIGHTS = np.array([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])
MASSLESS = (9,)


@dataclasses.dataclass(frozen=True)
class StubExpert(Expert):
    """An expert that names the words of its context."""

    def tables(self, lexicon):
        return {}

    def initial_carry(self, batch):
        return jnp.zeros((batch, 0))


# A product's words have no scores of their own.
CASES = {
    "log-linear": (LogLinear(), CONTEXTS),
    "softmax": (Softmax(), CONTEXTS),
    "several words, softmax": (Softmax(), WORD_SETS),
    "several words, sums of features": (LogLinear(form="dense_sums"), WORD_SETS),
    "several words, a product of features": (LogLinear(form="product"), WORD_SETS),
}


@pytest.fixture(params=["softmax", *slow(*(name for name in CASES if name != "softmax"))])
def arguments(request, float64, random):
    (inner, contexts), lexicon = CASES[request.param], examples.lexicon(MASSLESS)
    head, hidden = WithExpert(StubExpert(), inner), jnp.asarray(random.normal(size=(2, 3, SIZE)))
    params = examples.random_params(head, random, SIZE, lexicon)
    return head, params, head.tables(lexicon), hidden, contexts


def reference(head, params, hidden, contexts):
    """log p' of every word, [2, 3, V]."""
    inner, rows = params["head"], np.reshape(hidden, (-1, SIZE))
    if isinstance(head.head, Softmax):
        log_probs = references.softmax_log_probs(rows, inner["weights"], inner["bias"])
    else:
        matrix = references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)
        adaptors = [np.asarray(inner["weights"]) @ h + np.asarray(inner["bias"]) for h in rows]
        background = examples.log_background(MASSLESS)
        log_probs = references.log_linear_log_probs(adaptors, matrix, background)
    scores = np.array(log_probs).reshape(2, 3, VOCABULARY)
    for place in np.ndindex(2, 3):
        gate = np.asarray(hidden)[place] @ np.asarray(params["weights"]) + params["bias"]
        for word in {*np.ravel(contexts[place]).tolist()} - {NOTHING}:
            scores[(*place, word)] += gate
        scores[place] -= references.log_sum_exp(scores[place])
    return scores


def target_log_probs(log_probs):
    return np.take_along_axis(np.asarray(log_probs), TARGETS[..., None], -1)[..., 0]


CLOSE = {"rtol": 2e-6, "atol": 1e-6}


def test_probabilities_are_those_of_the_formula(arguments):
    head, params, tables, hidden, contexts = arguments
    expected = reference(head, params, hidden, contexts)

    @jax.jit
    def evaluate(params, tables, hidden):
        inputs = params, tables, hidden
        inner = params["head"], tables["head"], hidden, TARGETS
        return (
            head.log_probs(*inputs, context=contexts),
            head.log_prob_and_log_z(*inputs, TARGETS, context=contexts),
            head.head.log_prob_and_log_z(*inner),
            head.top_k(*inputs, 4, context=contexts),
        )

    log_probs, scores, plain_scores, best = evaluate(params, tables, hidden)
    np.testing.assert_allclose(log_probs, expected, **CLOSE)
    log_prob, log_z = scores
    np.testing.assert_allclose(log_prob, target_log_probs(expected), **CLOSE)
    # Where the expert knows nothing, all is as without it.
    plain_prob, plain_z = plain_scores
    np.testing.assert_allclose(log_prob[0, 1], plain_prob[0, 1], rtol=1e-12)
    np.testing.assert_allclose(log_z[0, 1], plain_z[0, 1], rtol=1e-12)
    values, words = best
    np.testing.assert_allclose(values, -np.sort(-expected, -1)[..., :4], **CLOSE)
    np.testing.assert_array_equal(words, np.argsort(-expected, -1)[..., :4])


def test_gradients_are_those_of_the_formula(arguments):
    head, params, tables, hidden, contexts = arguments

    def nested(arrays):
        within = {name: arrays[f"head {name}"] for name in params["head"]}
        return {"head": within, "weights": arrays["weights"], "bias": arrays["bias"]}

    arrays = {f"head {name}": leaf for name, leaf in params["head"].items()}
    arrays |= {"weights": params["weights"], "bias": params["bias"], "hidden": hidden}

    def objective(arrays):
        log_probs = target_log_probs(reference(head, nested(arrays), arrays["hidden"], contexts))
        return -np.sum((WEIGHTS * log_probs)[WEIGHTS > 0])

    def summed(arrays):
        columns = nested(arrays), tables, arrays["hidden"], TARGETS, WEIGHTS
        return head.weighted_loss(*columns, context=contexts)

    expected = references.finite_differences(objective, arrays)
    value, gradients = jax.jit(jax.value_and_grad(summed))(arrays)
    np.testing.assert_allclose(value, objective(arrays), **CLOSE)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], **CLOSE, err_msg=name)


@pytest.mark.parametrize("weight", [-60.0, -1.0, 0.0, 3.0, 200.0])
@pytest.mark.parametrize("probability", [0.0, 1e-30, 0.3, 1.0])
def test_the_mass_is_finite_and_so_is_its_gradient(weight, probability):
    """In float32, of words without mass and of certain ones."""
    log_prob = references.log(np.array(probability))
    inputs = jnp.float32(log_prob), jnp.float32(weight)
    value, gradients = jax.value_and_grad(log_expert_mass, (0, 1))(*inputs)
    log_complement = references.log(np.array(1 - probability))
    expected = references.log_sum_exp(np.array([log_complement, log_prob + weight]))
    # A probability of 1 is taken for one that is smaller by a rounding, 2^-23.
    expected = max(expected, np.log(2.0**-23) if probability == 1 else -np.inf)
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)
    assert np.isfinite(gradients).all()
    share = np.exp(log_prob + weight - expected)
    np.testing.assert_allclose(gradients[1], min(share, 1), rtol=1e-3, atol=1e-6)


def test_samples_have_the_declared_probabilities(arguments):
    head, params, tables, hidden, contexts = arguments
    draws = 10_000
    states, expert_words = jnp.broadcast_to(hidden[0, 0], (draws, SIZE)), contexts[0, 0]
    repeated_words = jnp.broadcast_to(expert_words, (draws, *np.shape(expert_words)))
    words = jax.jit(head.sample)(params, tables, states, jax.random.key(5), context=repeated_words)
    observed = np.bincount(words, minlength=VOCABULARY)
    expected = np.exp(reference(head, params, hidden, contexts)[0, 0])
    has_mass = expected > 0
    assert observed[~has_mass].sum() == 0
    result = scipy.stats.chisquare(observed[has_mass], draws * expected[has_mass])
    assert result.pvalue > 1e-3


@pytest.mark.parametrize("head", [LogLinear(background=KneserNey(2)), Softmax(tied=True)])
def test_heads_that_need_more_from_the_model_are_refused(head):
    with pytest.raises(UserError, match=r"head of WithExpert is a .*, which is tied or has a "):
        WithExpert(StubExpert(), head)


@pytest.mark.slow
def test_over_a_head_of_all_spellings_words_have_what_they_have_by_themselves(float64, random):
    """The probabilities of the lexicon's words do not sum to 1 then."""
    lexicon = examples.plain_lexicon()
    head = WithExpert(StubExpert(), CharLSTM(Spelling(longest=8), size=4, letter_size=3))
    params = examples.random_params(head, random, SIZE, lexicon)
    arguments = params, head.tables(lexicon), jnp.asarray(random.normal(size=(2, 3, SIZE)))
    log_probs = head.log_probs(*arguments, context=CONTEXTS)
    log_prob = head.log_prob(*arguments, TARGETS, context=CONTEXTS)
    np.testing.assert_allclose(target_log_probs(log_probs), log_prob, rtol=1e-6)
    assert np.exp(log_probs).sum(-1).max() < 0.999


def test_a_word_that_is_named_twice_counts_once(float64):
    """Z is 1 + p(S) (e^w - 1), S the set of named words, for w = 2 and S = {3, 5}."""
    head, lexicon = WithExpert(StubExpert(), Softmax()), examples.lexicon()
    bias = jnp.arange(VOCABULARY) / 10.0
    inner = {"weights": jnp.zeros((VOCABULARY, SIZE)), "bias": bias}
    params = {"head": inner, "weights": jnp.zeros(SIZE), "bias": jnp.array(2.0)}
    hidden, tables = jnp.zeros((1, SIZE)), head.tables(lexicon)
    p = np.exp(bias) / np.exp(bias).sum()
    named_words = jnp.array([[3, 3, 5]])
    weight = float(jax.jit(head.expert_weight)(params, hidden, named_words)[0])
    expected = np.log(p[3]) + weight - np.log(1 + (p[3] + p[5]) * np.expm1(weight))
    log_prob = jax.jit(head.log_prob)(params, tables, hidden, jnp.array([3]), context=named_words)
    np.testing.assert_allclose(log_prob, [expected], rtol=1e-12)
