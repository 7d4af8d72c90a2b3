"""The speller against its formula, a letter at a time."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples, references
from zoo.decoding.open_vocabulary import search_spellings
from zoo.errors import UserError
from zoo.heads import CharLSTM
from zoo.lexicon import Lexicon
from zoo.lexicon import spelling as spellings
from zoo.lexicon.spelling import BEGIN, END, MARKS, Spelling

SIZE = 5
WORDS = ("</s>", "a", "ab", "", "abba", "b", "baab")
LEXICON = Lexicon(words=WORDS, counts=np.ones(7, np.int64), boundary="</s>")
# Two letters and three marks that can be said, three letters long at most: "ab" has an end, the
# words of four letters are cut and have none.
HEAD = CharLSTM(Spelling(unit="characters", longest=3), size=4, letter_size=2)
TARGETS = np.array([[0, 2, 4], [6, 3, 2]])


def reference(params, letters, hidden):
    """log p of one spelling."""
    u, s, total, before = np.zeros(4), np.zeros(4), 0.0, BEGIN
    for letter in letters:
        z = params["letters"][before] @ params["input"] + hidden @ params["hidden"]
        z = z + params["bias"] + u @ params["recurrent"]
        i, f, g, o = np.split(z, 4)
        s = references.sigmoid(f) * s + references.sigmoid(i) * np.tanh(g)
        u = references.sigmoid(o) * np.tanh(s)
        scores = u @ params["output"] + params["output_bias"]
        total += scores[letter - END] - references.log_sum_exp(scores)
        before = letter
    return total


def spelled(word):
    return [*HEAD.spelling.letters(LEXICON)[word], END][:3]


@pytest.fixture
def problem(float64, random):
    """(params, tables, hidden [2, 3, D], params in numpy)."""
    params = examples.random_params(HEAD, random, SIZE, LEXICON)
    hidden = jnp.asarray(random.normal(size=(2, 3, SIZE)))
    return params, HEAD.tables(LEXICON), hidden, jax.tree.map(np.asarray, params)


def test_log_prob_and_gradients_are_those_of_the_formula(problem):
    params, tables, hidden, _ = problem
    weights = np.array([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])

    @jax.jit
    def evaluate(params, hidden):
        def objective(params, hidden):
            return HEAD.weighted_loss(params, tables, hidden, TARGETS, weights)

        log_prob, log_z = HEAD.log_prob_and_log_z(params, tables, hidden, TARGETS)
        return log_prob, log_z, jax.grad(objective, argnums=(0, 1))(params, hidden)

    log_prob, log_z, (params_gradient, hidden_gradient) = evaluate(params, hidden)
    arrays = {**jax.tree.map(np.asarray, params), "hidden of the word": np.asarray(hidden)}

    def log_probs(arrays):
        rows = arrays["hidden of the word"].reshape(-1, SIZE)
        words = TARGETS.ravel()
        return [reference(arrays, spelled(w), h) for w, h in zip(words, rows, strict=True)]

    np.testing.assert_allclose(np.ravel(log_prob), log_probs(arrays), rtol=1e-10)
    np.testing.assert_array_equal(log_z, 0)
    expected_gradients = references.finite_differences(
        lambda a: -weights.ravel() @ log_probs(a), arrays
    )
    for name, gradient in {**params_gradient, "hidden of the word": hidden_gradient}.items():
        np.testing.assert_allclose(
            gradient, expected_gradients[name], rtol=1e-5, atol=1e-8, err_msg=name
        )


def test_weights_narrower_than_the_losses_change_no_type(problem):
    params, tables, hidden, _ = problem
    weights = jnp.array([[1.0, 0.5, 2.0], [0.25, 0.0, 1.0]])

    @jax.jit
    def evaluate(weights):
        def objective(weights):
            return HEAD.weighted_loss(params, tables, hidden, TARGETS, weights)

        return jax.value_and_grad(objective)(weights)

    expected = evaluate(weights.astype(jnp.float64))
    for narrow in (jnp.float32, jnp.bfloat16):
        loss, slopes = evaluate(weights.astype(narrow))
        assert (loss.dtype, slopes.dtype) == (jnp.float64, narrow)
        np.testing.assert_allclose(loss, expected[0])
        np.testing.assert_allclose(slopes.astype(float), expected[1], rtol=1e-2)


def test_the_weighted_loss_of_one_state_is_its_loss(problem):
    params, tables, hidden, _ = problem
    arguments = params, tables, hidden[0, 0], jnp.array(4)
    weighted = jax.jit(HEAD.weighted_loss)(*arguments, jnp.array(2.0))
    np.testing.assert_allclose(weighted, 2 * jax.jit(HEAD.loss)(*arguments))


def test_all_spellings_sum_to_one(problem):
    params, _, hidden, _ = problem
    letter_ids = [n for n in range(END, MARKS + 2) if n != END]
    rows = [
        [*letters, END] for n in range(3) for letters in itertools.product(letter_ids, repeat=n)
    ]
    rows += [list(letters) for letters in itertools.product(letter_ids, repeat=3)]
    table = spellings.table(rows)
    states = jnp.repeat(hidden[0, :1], len(rows), axis=0)
    log_probs = jax.jit(HEAD.spelled_log_prob)(params, states, table["letters"], table["lengths"])
    np.testing.assert_allclose(np.exp(log_probs).sum(), 1, rtol=1e-10)


def test_renormalised_over_the_lexicon(problem):
    params, tables, hidden, plain = problem
    head = dataclasses.replace(HEAD, renormalised=True)
    log_prob, log_mass = jax.jit(head.log_prob_and_log_z)(params, tables, hidden, TARGETS)
    log_probs = jax.jit(head.log_probs)(params, tables, hidden)
    for place in np.ndindex(2, 3):
        h = np.asarray(hidden[place])
        open_log_probs = np.array([reference(plain, spelled(word), h) for word in range(7)])
        mass = references.log_sum_exp(open_log_probs)
        np.testing.assert_allclose(log_mass[place], mass, rtol=1e-9)
        np.testing.assert_allclose(log_probs[place], open_log_probs - mass, rtol=1e-9)
        np.testing.assert_allclose(log_prob[place], log_probs[place][TARGETS[place]], rtol=1e-9)
    values, words = jax.jit(HEAD.top_k, static_argnums=3)(params, tables, hidden, 2)
    np.testing.assert_array_equal(words, np.argsort(-np.asarray(log_probs), axis=-1)[..., :2])
    assert (values < np.sort(log_probs, axis=-1)[..., :-3:-1]).all()  # the others have mass too
    assert "7 words" in head.normalised_over(LEXICON)
    assert HEAD.normalised_over(LEXICON) == (
        "all spellings of 3 characters at most, those outside the alphabet being one"
    )
    assert CharLSTM().normalised_over(LEXICON) == "all spellings of 50 bytes at most"


@pytest.mark.slow
def test_samples_have_the_declared_probabilities(problem):
    params, tables, hidden, plain = problem
    draws = 5000
    states = jnp.repeat(hidden[1, :1], draws, axis=0)
    samples = np.asarray(jax.jit(HEAD.sample_spellings)(params, states, jax.random.key(3)))
    assert samples.shape == (draws, 3)
    word_counts = np.array(
        [(samples == [*spelled(w), 0, 0][:3]).all(1).sum() for w in (0, 1, 2, 3, 5)]
    )
    h = np.asarray(hidden[1, 0])
    expected = np.exp([reference(plain, spelled(word), h) for word in (0, 1, 2, 3, 5)])
    observed = np.append(word_counts, draws - word_counts.sum())
    result = scipy.stats.chisquare(observed, draws * np.append(expected, 1 - expected.sum()))
    assert result.pvalue > 1e-3
    words = jax.jit(HEAD.sample)(params, tables, states, jax.random.key(4))
    word_probabilities = np.exp([reference(plain, spelled(word), h) for word in range(7)])
    counts = np.bincount(words, minlength=7)
    assert (
        scipy.stats.chisquare(counts, draws * word_probabilities / word_probabilities.sum()).pvalue
        > 1e-3
    )


@pytest.mark.slow
def test_a_beam_finds_the_most_probable_of_all_spellings(problem):
    params, _, hidden, plain = problem
    letter_ids = range(END + 1, MARKS + 2)
    all_spellings = [
        (*letters, END) for n in range(3) for letters in itertools.product(letter_ids, repeat=n)
    ]
    all_spellings += [*itertools.product(letter_ids, repeat=3)]
    rows = hidden[:, 0]
    search = jax.jit(functools.partial(search_spellings, HEAD), static_argnums=(2, 3))
    wide, narrow = search(params, rows, 100, 125), search(params, rows, 3, 3)
    assert wide[1].shape == (2, 100, 3) and narrow[1].shape == (2, 3, 3)
    np.testing.assert_array_equal(wide[2], -np.inf)  # nothing was let go
    for row in range(2):
        log_prob = {s: reference(plain, s, np.asarray(rows[row])) for s in all_spellings}
        best = sorted(all_spellings, key=log_prob.get, reverse=True)
        expected = [log_prob[s] for s in best]
        np.testing.assert_allclose(wide[0][row], expected[:100], rtol=1e-9)
        assert [padded(s) for s in best[:100]] == wide[1][row].tolist()
        # What a narrow beam finds has its own probability, and what it missed is bounded.
        narrow_spellings = [
            tuple(letter for letter in s if letter) for s in narrow[1][row].tolist()
        ]
        np.testing.assert_allclose(
            narrow[0][row], [log_prob[s] for s in narrow_spellings], rtol=1e-9
        )
        assert sorted(narrow[0][row], reverse=True) == narrow[0][row].tolist()
        missed_log_probs = [log_prob[s] for s in all_spellings if s not in narrow_spellings]
        assert max(missed_log_probs) <= max(narrow[2][row], narrow[0][row][-1]) + 1e-12
        assert narrow[2][row] > -np.inf
    with pytest.raises(UserError, match="a beam of 2 cannot find 3"):
        search_spellings(HEAD, params, rows, 3, 2)


def padded(letters):
    return [*letters, 0, 0][:3]


def test_another_lexicon_needs_nothing_new(problem):
    params, tables, hidden, _ = problem
    new_lexicon = Lexicon(("bb", "ab"), np.zeros(2, np.int64), alphabet=LEXICON.letters)
    new_params = HEAD.for_lexicon(params, LEXICON, new_lexicon)
    log_probs = jax.jit(HEAD.log_probs)(new_params, HEAD.tables(new_lexicon), hidden[:1, :1])
    log_prob = jax.jit(HEAD.log_prob)(params, tables, hidden[:1, :1], jnp.asarray([[2]]))
    np.testing.assert_allclose(log_probs[0, 0, 1], log_prob[0, 0], rtol=1e-10)


def test_notes_and_refusals():
    assert HEAD.warnings(LEXICON) == {
        "words cut by the head": 2,
        "words with letters unknown to the head": 0,
    }
    with pytest.raises(UserError, match="size of CharLSTM is 0"):
        CharLSTM(size=0)
    params = jax.eval_shape(lambda key: CharLSTM().init(key, SIZE, LEXICON), jax.random.key(0))
    assert params["output"].shape == (128, 256 + MARKS - END)
