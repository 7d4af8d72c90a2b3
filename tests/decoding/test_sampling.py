"""Sampling from a step function whose probabilities are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo import decoding
from zoo.decoding import feed, force, sample, sampling
from zoo.errors import UserError

# p(next | word): a Markov chain over three words.
CHAIN = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2], [0.05, 0.15, 0.8]], np.float32)


def chain_step(table, words, carry):
    """The carry counts the steps."""
    return jnp.log(table)[words], carry + 1


STEP = jax.tree_util.Partial(chain_step, CHAIN)


def draw(words, length, step=STEP, seed=0, **options):
    """Samples as numpy arrays."""
    carry = jnp.zeros((), jnp.int32)
    samples = sample(step, jnp.array(words), carry, jax.random.key(seed), length, **options)
    return tuple(map(np.asarray, samples))


def test_temperature_zero_is_greedy():
    words, log_prob = draw([0, 1, 2], 4, temperature=0)
    np.testing.assert_array_equal(words, [[1, 0, 1, 0], [0, 1, 0, 1], [2, 2, 2, 2]])
    np.testing.assert_allclose(
        np.exp(log_prob), [[0.5, 0.7, 0.5, 0.7], [0.7, 0.5, 0.7, 0.5], [0.8] * 4], rtol=1e-6
    )


def test_nothing_comes_after_the_boundary():
    words, log_prob = draw([0, 1], 4, temperature=0, boundary=1)
    np.testing.assert_array_equal(words, [[1, 1, 1, 1], [0, 1, 1, 1]])
    np.testing.assert_allclose(np.exp(log_prob), [[0.5, 1, 1, 1], [0.7, 0.5, 1, 1]], rtol=1e-6)


def test_seeds_repeat_and_differ():
    words, other_seed_words = draw([0] * 50, 5)[0], draw([0] * 50, 5, seed=1)[0]
    np.testing.assert_array_equal(draw([0] * 50, 5)[0], words)
    assert (words != other_seed_words).any()


def test_a_plain_function_is_a_step():
    step = functools.partial(chain_step, jnp.array(CHAIN))
    np.testing.assert_array_equal(draw([0], 3, step, temperature=0)[0], [[1, 0, 1]])


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_a_temperature_below_zero_is_refused(temperature):
    with pytest.raises(UserError, match="temperature"):
        draw([0], 1, temperature=temperature)


def test_feeding_reads_every_word():
    carry = jnp.zeros((), jnp.int32)
    assert feed(STEP, jnp.array([[0, 1, 2]]), carry) == 3
    assert feed(STEP, jnp.zeros((1, 0), jnp.int32), carry) == 0


# Ten words with ties: 0.2 twice, 0.05 three times.
TEN = np.array([0.05, 0.2, 0.05, 0.1, 0.2, 0.05, 0.12, 0.08, 0.15, 0.0])


def truncated(probs, temperature=1.0, top_k=None, nucleus=None):
    """The distribution that is drawn from, in float64, by its definition."""
    probs = np.asarray(probs, np.float64) ** (1 / temperature)
    order = sorted(range(len(probs)), key=lambda word: (-probs[word], word))[:top_k]
    probs = probs / probs[order].sum()
    nucleus_words, mass = [], 0.0
    for word in order:
        if nucleus_words and nucleus is not None and mass >= nucleus:
            break
        nucleus_words.append(word)
        mass += probs[word]
    distribution = np.zeros(len(probs))
    distribution[nucleus_words] = probs[nucleus_words] / probs[nucleus_words].sum()
    return distribution


@pytest.mark.parametrize(
    ("options", "support_size"),
    [
        ({"top_k": 1}, 1),
        ({"top_k": 6}, 6),  # the last is one of three equals: the first of them
        ({"nucleus": 0.5}, 3),
        ({"nucleus": 0.9, "temperature": 2.0}, 8),
        ({"top_k": 4, "nucleus": 0.5, "temperature": 0.5}, 2),
        ({"nucleus": 1.0}, 9),
        ({"top_k": 100}, 9),
        ({"nucleus": 1e-9}, 1),
    ],
    ids=str,
)
def test_words_are_drawn_from_the_truncated_distribution(options, support_size):
    step = jax.tree_util.Partial(chain_step, np.tile(TEN.astype(np.float32), (10, 1)))
    words, log_prob = draw([0] * 10000, 1, step, **options)
    expected = truncated(TEN, **options)
    assert (expected > 0).sum() == support_size
    frequencies = np.bincount(words[:, 0], minlength=10) / len(words)
    assert not frequencies[expected == 0].any()
    # Four standard deviations of a frequency over 10,000 draws are at most 0.02.
    np.testing.assert_allclose(frequencies, expected, atol=0.02)
    np.testing.assert_allclose(log_prob[:, 0], np.log(TEN[words[:, 0]]), rtol=1e-6)


def test_rows_have_words_of_their_own():
    words, _ = draw([0, 1, 2] * 50, 1, nucleus=0.6)
    for word, support in enumerate([{1, 2}, {0}, {2}]):
        assert {*words[word::3, 0].tolist()} == support


def test_what_keeps_all_words_draws_as_before():
    plain = draw([0] * 50, 5)[0]
    np.testing.assert_array_equal(draw([0] * 50, 5, top_k=3, nucleus=1.0)[0], plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 0}, "top-k is 0"),
        ({"nucleus": 0.0}, "nucleus is 0.0"),
        ({"nucleus": 1.5}, "nucleus is 1.5"),
        ({"nucleus": float("nan")}, "nucleus is nan"),
    ],
    ids=str,
)
def test_truncations_out_of_range_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        draw([0], 1, **options)


def test_forced_sequences_have_the_log_probs_of_their_words():
    carry = jnp.zeros(2, jnp.int32)
    targets = np.array([[[1, 2, 0], [0, 0, 1]], [[2, 2, 2], [1, 0, 2]]])
    log_probs = force(STEP, np.array([0, 2]), carry, targets)
    for row, rank in np.ndindex(2, 2):
        previous_words = [(0, 2)[row], *targets[row, rank, :-1]]
        expected = [
            np.log(CHAIN[pair]) for pair in zip(previous_words, targets[row, rank], strict=True)
        ]
        np.testing.assert_allclose(log_probs[row, rank], expected, rtol=1e-6)
    np.testing.assert_array_equal(
        force(STEP, np.array([0, 2]), carry, targets[:, 1]), log_probs[:, 1]
    )


def test_forced_sequences_have_a_row_for_each_word():
    targets = np.zeros((2, 3, 4), int)  # of two sentences, or of three in another order of axes
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\), and words \(3,\): give targets"):
        force(STEP, np.zeros(3, int), jnp.zeros(3, jnp.int32), targets)


def test_draws_of_single_distributions_are_those_that_are_kept():
    log_probs = jnp.log(jnp.asarray([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]]))
    repeated_log_probs = jnp.broadcast_to(log_probs, (200, 2, 3))
    key = jax.random.key(1)
    for options, supports in (
        ({}, [{0, 1, 2}, {0, 1, 2}]),
        ({"top_k": 2}, [{1, 2}, {0, 2}]),
        ({"nucleus": 0.55}, [{1}, {0, 2}]),
        ({"top_k": 7, "nucleus": 1}, [{0, 1, 2}, {0, 1, 2}]),
        ({"temperature": 0}, [{1}, {0}]),
    ):
        words = jax.jit(functools.partial(decoding.draw, **options))(repeated_log_probs, key)
        assert (words.shape, words.dtype) == ((200, 2), jnp.int32)
        assert [set(column.tolist()) for column in words.T] == supports, options
    assert decoding.draw(log_probs[0], key, temperature=0).shape == ()
    with pytest.raises(UserError, match="top-k is 0"):
        decoding.draw(log_probs, key, top_k=0)


@pytest.mark.parametrize("size", [13, 1000, *slow(1, 2, 16)])
def test_draws_have_the_frequencies_of_p_in_any_number_of_words(size, random):
    probs = random.dirichlet(np.full(size, 0.5))
    probs[random.random(size) < 0.2] = 0  # impossible words
    probs[0] += 1e-3
    probs /= probs.sum()
    draws = 20_000
    rows = jnp.broadcast_to(jnp.log(jnp.array(probs, jnp.float32)), (draws, size))
    counts = np.bincount(jax.jit(decoding.draw)(rows, jax.random.key(1)), minlength=size)
    assert not counts[probs == 0].any()
    expected = draws * probs
    is_frequent = expected >= 5
    statistic = ((counts - expected)[is_frequent] ** 2 / expected[is_frequent]).sum()
    # Chi-square of n cells has mean n and variance 2 n.
    assert statistic < is_frequent.sum() + 5 * np.sqrt(2 * is_frequent.sum())


def test_a_share_that_rounds_to_the_whole_falls_on_a_possible_word():
    weights = jnp.array([[0.0, 0.3, 0.4, 0.0], [0.0, 0.0, 1.0, 0.0]])
    largest = jnp.float32(1 - 2**-24)
    columns = [
        sampling._invert_cumulative(jnp.full(2, u, jnp.float32), weights)
        for u in (0, 0.43, largest)
    ]
    assert [column.tolist() for column in columns] == [[1, 2], [2, 2], [2, 2]]


def test_words_that_reach_the_nucleus_exactly_are_enough():
    """1/2 is the first word's probability and the nucleus: no other word is drawn."""
    log_probs = jnp.log(jnp.array([[0.25, 0.5, 0.25]] * 50))

    def draw(nucleus):
        program = jax.jit(functools.partial(decoding.draw, nucleus=nucleus))
        return program(log_probs, jax.random.key(1))

    assert draw(0.5).tolist() == [1] * 50
    two_words = draw(0.5000001)
    assert {*two_words.tolist()} == {0, 1}  # of equally probable words the first
