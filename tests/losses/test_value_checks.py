"""Values that no docstring allows are errors that name the argument, where they are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo import losses

HIDDEN, TABLE = jnp.ones((2, 4)), (jnp.zeros((3, 4)), jnp.zeros(3))
EVEN = jnp.log(jnp.full((2, 2), 0.5))
CONTEXTS = jnp.ones((2, 2, 4))
TAILS = [(jnp.zeros((4, 2)), jnp.zeros((5, 2)))]
CLASSES = jnp.zeros((2, 4)), jnp.zeros(2), jnp.zeros((2, 2, 4)), jnp.zeros((2, 2))
PATHS = jnp.array([[1, 0], [1, 0]]), jnp.array([[-1.0, 0.0], [1.0, 1.0]])
NODES = jnp.zeros((2, 4)), jnp.zeros(2)
NOISE = losses.noise_tables(np.full(4, 0.25))
KEY = jax.random.key(0)


def ids(*numbers):
    return jnp.array(numbers)


NOT_PROBABILITIES = {
    "counts": (
        [9, 3, 1],
        r"^the probabilities sum to 13.0: divide them, or counts, by their sum$",
    ),
    "halves of them": ([0.5, 0.25], r"^the probabilities sum to 0.75: divide"),
    "a negative one": ([1.5, -0.5], r"^probabilities has -0.5 at \[1\]: give"),
    "nan": ([0.5, np.nan], r"^probabilities has nan at \[1\]: give"),
    "infinity": ([np.inf, 1.0], r"^probabilities has inf at \[0\]: give"),
    "none": ([], r"^the probabilities sum to 0.0: divide"),
}


@pytest.mark.parametrize("case", NOT_PROBABILITIES)
@pytest.mark.parametrize("function", [losses.noise_tables, losses.alias_table])
def test_noise_is_of_probabilities(function, case):
    numbers, message = NOT_PROBABILITIES[case]
    with pytest.raises(ValueError, match=message):
        function(np.array(numbers))


def test_every_noise_word_has_some_probability():
    with pytest.raises(ValueError, match=r"^probabilities has 0.0 at \[1\]: give each word some"):
        losses.noise_tables(np.array([1.0, 0.0]))
    assert losses.alias_table(np.array([1.0, 0.0]))[0].tolist() == [1.0, 0.0]


def test_probabilities_may_be_rounded():
    for kind in (np.float32, np.float64):
        shares = (np.arange(1, 1001) / np.arange(1, 1001).sum()).astype(kind)
        losses.noise_tables(shares)
    losses.mixture_log_probs(CONTEXTS, EVEN.astype(jnp.bfloat16), *TABLE)


WRONG = {
    "softmax": lambda: losses.softmax_loss(HIDDEN, *TABLE, ids(0, 3)),
    "weighted softmax": lambda: losses.weighted_softmax_loss(
        HIDDEN, *TABLE, ids(-1, 0), jnp.array([1.0, 0.0])
    ),
    "mixture": lambda: losses.mixture_loss(CONTEXTS, EVEN, *TABLE, ids(0, 3)),
    "weighted mixture": lambda: losses.weighted_mixture_loss(
        CONTEXTS, EVEN, *TABLE, ids(3, 0), jnp.ones(2)
    ),
    "adaptive": lambda: losses.adaptive_loss(
        HIDDEN, jnp.zeros((3, 4)), jnp.zeros(3), TAILS, ids(0, 7)
    ),
    "weighted adaptive": lambda: losses.weighted_adaptive_loss(
        HIDDEN, jnp.zeros((3, 4)), jnp.zeros(3), TAILS, ids(-1, 6), jnp.ones(2)
    ),
    "hierarchical": lambda: losses.hierarchical_loss(HIDDEN, *CLASSES, ids(0, 3), 3),
    "path": lambda: losses.path_loss(HIDDEN, *NODES, ids([0, 2], [0, 0]), PATHS[1] * 0 + 1),
    "measured": lambda: losses.softmax_loss(
        HIDDEN, *TABLE, ids(0, 3), None, jax.tree_util.Partial(lambda c: c), jnp.zeros((2, 3))
    ),
    "log-linear": lambda: losses.log_linear_loss(
        HIDDEN, jnp.eye(3), jnp.zeros(3), *TABLE, ids(3, 0)
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_ids_outside_the_vocabulary_are_named(name):
    with pytest.raises(ValueError, match=r"^\w+ has (-1|2|3|7) at \[.*\]: give ids from 0 to \d$"):
        WRONG[name]()


TOKEN_CASES = {
    "a prior that is no distribution": (
        lambda: losses.mixture_loss(CONTEXTS, EVEN * 0, *TABLE, ids(0, 1)),
        r"^exp\(log_prior\) sum to 2.0 at \[0\]: subtract the log",
    ),
    "no tails": (
        lambda: losses.adaptive_log_probs(HIDDEN, *TABLE, []),
        r"^tails are 0, and rows of weights 3: give a tail at least",
    ),
    "no words in the head": (
        lambda: losses.adaptive_log_probs(HIDDEN, jnp.zeros((1, 4)), jnp.zeros(1), TAILS),
        r"^tails are 1, and rows of weights 1: give",
    ),
    "too many words for the classes": (
        lambda: losses.hierarchical_log_probs(HIDDEN, *CLASSES, 5),
        r"^vocabulary is 5, and 2 classes of 2 words are for 3 to 4 words",
    ),
    "too few words for the classes": (
        lambda: losses.hierarchical_top_k(HIDDEN, *CLASSES, 2, 1),
        r"^vocabulary is 2, and 2 classes of 2 words are for 3 to 4 words",
    ),
    "turns of another size": (
        lambda: losses.path_log_probs(HIDDEN, *NODES, PATHS[0], PATHS[1] * 2),
        r"^turns has -2.0 at \[0, 0\]: give 1, -1, or 0",
    ),
    "negative counts": (
        lambda: losses.huffman_paths(np.array([3, -1])),
        r"^counts has -1 at \[1\]: give occurrences, at least 0",
    ),
    "no counts": (lambda: losses.huffman_paths(np.zeros(0)), r"^counts are empty: give the count"),
    "no log-probability": (
        lambda: losses.log_expert_mass(jnp.array([0.5]), jnp.zeros(1)),
        r"^log_prob has 0.5 at \[0\]: give logarithms of probabilities, at most 0",
    ),
    "no log q": (
        lambda: losses.log_expected_count(jnp.array(2.0), 3, distinct=False),
        r"^log_q has 2.0: give logarithms",
    ),
    "no draws": (
        lambda: losses.log_expected_count(jnp.array(-2.0), 0, distinct=True),
        r"^draws has 0: give at least 1",
    ),
    "no samples": (
        lambda: losses.sample_noise(NOISE, KEY, (2,), 0),
        r"^draws has 0: give at least 1",
    ),
    "thresholds that are no logarithms": (
        lambda: losses.metropolis_walk(jnp.array([0.5, 0.5]), jnp.zeros(2)),
        r"^log_thresholds has 0.5 at \[0\]: give logarithms",
    ),
    "other thresholds": (
        lambda: losses.metropolis_walk(jnp.zeros(3), jnp.zeros(2)),
        r"^log_weights has the shape \(2,\), \[..., K\], but K is 3 in log_thresholds",
    ),
    "a negative penalty": (
        lambda: losses.adaptor_penalty(HIDDEN, *TABLE, -1.0),
        r"^penalty has -1.0: give at least 0",
    ),
    "a norm below 1": (
        lambda: losses.adaptor_penalty(HIDDEN, *TABLE, 1.0, 0.5),
        r"^norm has 0.5: give at least 1",
    ),
    "a penalty on log Z below 0": (
        lambda: losses.weighted_softmax_loss(HIDDEN, *TABLE, ids(0, 1), jnp.ones(2), penalty=-1.0),
        r"^penalty has -1.0: give at least 0",
    ),
    "weights of other tokens": (
        lambda: losses.weighted_sum(jnp.ones(3), jnp.ones((3, 1))),
        r"^token_weights has the shape \(3, 1\), \[...\], but ... is \(3,\) in losses",
    ),
    "slots of other draws": (
        lambda: losses.importance_loss(*slots(), jnp.zeros((2, 1), bool)),
        r"^is_excluded has the shape \(2, 1\), \[..., K\], but K is 3 in noise_logits",
    ),
    "another mask of draws": (
        lambda: losses.nce_loss(*slots(), jnp.ones((2, 1), bool)),
        r"^mask has the shape \(2, 1\), \[..., K\], but K is 3 in noise_logits",
    ),
}


def slots():
    return jnp.zeros(2), jnp.zeros((2, 3)), jnp.zeros(2), jnp.zeros((2, 3))


@pytest.mark.parametrize("case", TOKEN_CASES)
def test_what_a_docstring_asks_for_is_looked_at(case):
    call, message = TOKEN_CASES[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_tokens_without_weight_may_have_any_target():
    weights, targets = jnp.array([2.0, 0.0]), ids(1, 99)
    loss = losses.weighted_softmax_loss(HIDDEN, *TABLE, targets, weights)
    np.testing.assert_allclose(loss, 2 * np.log(3), rtol=1e-6)
    loss = losses.weighted_mixture_loss(CONTEXTS, EVEN, *TABLE, targets, weights)
    np.testing.assert_allclose(loss, 2 * np.log(3), rtol=1e-6)


def test_compiled_code_looks_at_no_values():
    compiled = jax.jit(losses.softmax_loss)(HIDDEN, *TABLE, ids(0, 3))
    assert compiled[0].shape == (2,)
    jax.jit(losses.log_expert_mass)(jnp.array([0.5]), jnp.zeros(1))


def test_blocks_have_at_least_a_row():
    for loss in (
        losses.softmax_loss,
        lambda *arguments, **keywords: losses.weighted_softmax_loss(
            *arguments, jnp.ones(2), **keywords
        ),
    ):
        with pytest.raises(ValueError, match="block is 0: give a whole number of at least 1"):
            loss(HIDDEN, *TABLE, ids(0, 1), block=0)


def test_no_tokens_have_a_loss_of_zero():
    nothing = jnp.ones((0, 4)), *TABLE, jnp.zeros(0, jnp.int32)
    assert losses.weighted_softmax_loss(*nothing, jnp.zeros(0)) == 0


MEASURED = {
    "bias": ({"bias": jnp.zeros(1)}, "bias has the shape"),
    "contexts": ({"contexts": jnp.zeros((3, 3))}, r"contexts have the shape \(3, 3\): give"),
    "measure": (
        {"log_measure": lambda contexts: contexts[:, :1]},
        r"log_measure returns the shape",
    ),
}


@pytest.mark.parametrize("case", MEASURED)
def test_measures_are_of_every_word_and_token(case):
    options = {"bias": TABLE[1], "log_measure": lambda contexts: contexts}
    options |= {"contexts": jnp.zeros((2, 3)), **MEASURED[case][0]}
    options["log_measure"] = jax.tree_util.Partial(options["log_measure"])
    table = {"hidden": HIDDEN, "weights": TABLE[0], "targets": ids(0, 1)}
    for loss, keywords in (
        (losses.softmax_loss, {}),
        (losses.weighted_softmax_loss, {"token_weights": jnp.ones(2)}),
    ):
        with pytest.raises(ValueError, match=MEASURED[case][1]):
            loss(**table, **options, **keywords)
