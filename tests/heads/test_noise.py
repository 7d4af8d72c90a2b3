"""Noise words: what is drawn of letters is what is declared, and what it trains."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples, references
from zoo.base.arrays.random_keys import Keys
from zoo.errors import UserError
from zoo.heads import (
    NCE,
    BlackOut,
    CNNSoftmax,
    ImportanceSampling,
    LetterNoise,
    LogUniformNoise,
    Noise,
    UniformNoise,
    UnigramNoise,
    noise,
)
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import BEGIN, BOUNDARY, END, MARKS, Spelling
from zoo.losses.noise_sampling import draw_per_unit

A, B = MARKS, MARKS + 1
SPELLING = Spelling(unit="characters", longest=3)
WORDS = Lexicon(
    words=("</s>", "ab", "b", "aab", "abba", "", "bb"),
    counts=np.array([9, 4, 0, 2, 1, 0, 3]),
    boundary="</s>",
)
# As a speller says them: the fifth is cut, and has no end.
SPELLED = [(BOUNDARY, END), (A, B, END), (B, END), (A, A, B), (A, B, B), (END,), (B, B, END)]
# All that can be said: 31 that end within three letters, and 125 that do not.
ALL = [
    (*letters, END) if len(letters) < 3 else letters
    for size in range(4)
    for letters in itertools.product(range(END + 1, MARKS + 2), repeat=size)
]
RECIPES = {
    "unigrams": LetterNoise(order=1),
    "bigrams": LetterNoise(order=2, smoothing=0.3),
    "trigrams": LetterNoise(),
    "more than a word has": LetterNoise(order=6, smoothing=2.0, power=0.0),
}


@functools.cache
def tables_of(name):
    return RECIPES[name].tables(WORDS, SPELLING)


def as_arrays(spellings):
    letters = np.zeros((len(spellings), 3), np.int32)
    for row, spelling in enumerate(spellings):
        letters[row, : len(spelling)] = spelling
    return jnp.asarray(letters), jnp.asarray([*map(len, spellings)])


def probability(recipe, letter, context):
    """p(letter | context) by the recursion, counting anew each time."""
    if context is None:
        return 1 / 6
    letter_count = context_count = 0.0
    for count, spelled in zip(WORDS.counts, SPELLED, strict=True):
        path = (BEGIN, *spelled)
        for place in range(1, len(path)):
            if path[max(0, place - len(context)) : place] == context:
                context_count += (count + 1) ** recipe.power
                letter_count += (count + 1) ** recipe.power * (path[place] == letter)
    shorter = probability(recipe, letter, context[1:] if context else None)
    return (letter_count + recipe.smoothing * shorter) / (context_count + recipe.smoothing)


def log_q(recipe, spelling):
    path, total = (BEGIN, *spelling), 0.0
    for place in range(1, len(path)):
        context = path[max(0, place - recipe.order + 1) : place]
        total += np.log(probability(recipe, path[place], context))
    return total


@pytest.mark.parametrize("name", RECIPES)
def test_log_probabilities_are_those_of_the_recursion(name):
    spellings = ALL[::7]
    log_probs = noise.log_prob(tables_of(name), *as_arrays(spellings))
    expected = [log_q(RECIPES[name], spelling) for spelling in spellings]
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5)
    word_log_q = [log_q(RECIPES[name], spelling) for spelling in SPELLED]
    np.testing.assert_allclose(tables_of(name)["log_q"], word_log_q, rtol=1e-5)


@pytest.mark.parametrize("name", RECIPES)
def test_all_spellings_together_have_the_mass_one(name):
    log_probs = noise.log_prob(tables_of(name), *as_arrays(ALL))
    np.testing.assert_allclose(np.exp(np.asarray(log_probs, np.float64)).sum(), 1, rtol=1e-5)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.slow
def test_frequencies_are_those_declared(name):
    count = 20_000
    draw = jax.jit(noise.draw, static_argnums=(2, 3))
    spellings = draw(tables_of(name), jax.random.key(8), (count,), 3)
    places = {spelling: place for place, spelling in enumerate(ALL)}
    rows = [
        tuple(row[:size])
        for row, size in zip(spellings.letters.tolist(), spellings.sizes, strict=True)
    ]
    observed = np.bincount([places[row] for row in rows], minlength=len(ALL))
    declared = noise.log_prob(tables_of(name), *as_arrays(ALL))
    np.testing.assert_allclose(
        spellings.log_q, declared[np.array([places[r] for r in rows])], rtol=1e-5
    )
    expected = count * np.exp(np.asarray(declared, np.float64))
    # Rare spellings are counted together.
    rare = expected < 5
    observed, expected = (np.append(x[~rare], x[rare].sum()) for x in (observed, expected))
    assert scipy.stats.chisquare(observed, expected * count / expected.sum()).pvalue > 1e-3


def test_more_is_drawn_than_the_words_that_are_known():
    spellings = noise.draw(tables_of("trigrams"), jax.random.key(0), (300,), 3)
    rows = {
        tuple(row[:n]) for row, n in zip(spellings.letters.tolist(), spellings.sizes, strict=True)
    }
    assert set(SPELLED[:5]) <= rows
    assert rows - set(SPELLED)


@pytest.mark.parametrize(("per", "shape"), [("batch", (4,)), ("row", (3, 4)), ("token", (3, 5, 4))])
@pytest.mark.slow
def test_rows_draw_the_same_whichever_are_beside_them(per, shape):
    rows = jax.random.split(jax.random.key(1), 3)

    def sample(rows):
        keys = Keys(jax.random.key(0), rows)
        tables = tables_of("trigrams")
        draw = functools.partial(noise.draw, tables, longest=3)
        return draw_per_unit(draw, keys, (len(rows), 5), 4, per)

    spellings = sample(rows)
    assert spellings.log_q.shape == spellings.sizes.shape == shape
    assert spellings.letters.shape == (*shape, 3)
    last_spellings = sample(rows[1:])
    last_rows = slice(None) if per == "batch" else slice(1, None)
    jax.tree.map(
        lambda x, y: np.testing.assert_array_equal(x[last_rows], y), spellings, last_spellings
    )


@pytest.mark.parametrize("padding", ["light", "full", "fixed"])
@pytest.mark.parametrize("window", [1, 2, 5])
def test_what_was_drawn_is_padded_as_words_are(padding, window):
    spelling = Spelling("characters", padding, longest=3)
    expected = spelling.tables(WORDS, window)
    letters, lengths = jax.jit(spelling.pad, static_argnums=1)(as_arrays(SPELLED)[0], window)
    np.testing.assert_array_equal(lengths, expected["lengths"])
    width = expected["letters"].shape[1]
    np.testing.assert_array_equal(letters[:, :width], expected["letters"])
    np.testing.assert_array_equal(letters[:, width:], 0)


# ------------------------------------------------------------ the head

NETWORK = Convolution(SPELLING, letter_size=2, widths=(3,))
TARGETS = jnp.asarray([[0, 4, 6], [1, 5, 2]])
SIZE = 5


def problem(per, random):
    head = CNNSoftmax(
        NETWORK,
        sampled=NCE(noise=LetterNoise(order=2), samples=4, noise_per=per, learned_partition=True),
    )
    params = examples.random_params(head, random, SIZE, WORDS)
    return head, head.tables(WORDS), params, jnp.asarray(random.normal(size=(2, 3, SIZE)))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "per", ["batch", *(pytest.param(per, marks=pytest.mark.slow) for per in ("row", "token"))]
)
@pytest.mark.slow
def test_the_loss_is_that_of_a_loop_over_the_spellings(per, random):
    head, tables, params, hidden = problem(per, random)
    key = jax.random.key(6)
    loss = jax.jit(head.loss)(params, tables, hidden, TARGETS, key=key)
    draw = functools.partial(noise.draw, tables["sampled"], longest=3)
    spellings = draw_per_unit(draw, key, (2, 3), 4, per)

    recipe, spelled = LetterNoise(order=2), spellings.letters.reshape(-1, 3)
    letters, lengths = SPELLING.pad(spelled, 3)
    padded = {"letters": letters, "lengths": lengths}
    word_vectors = references.convolution(
        NETWORK, params["network"], NETWORK.tables(WORDS), range(7)
    )
    noise_vectors = references.convolution(NETWORK, params["network"], padded, range(len(letters)))
    log_expected = [
        np.log(4) + log_q(recipe, tuple(row[:size]))
        for row, size in zip(spelled.tolist(), spellings.sizes.ravel(), strict=True)
    ]
    noise_ids = np.arange(len(letters)).reshape(spellings.sizes.shape)
    noise_ids = {"batch": noise_ids[None, None], "row": noise_ids[:, None], "token": noise_ids}[per]
    noise_ids = np.broadcast_to(noise_ids, (2, 3, 4))
    shift = float(params["bias"] - params["log_partition"])
    for place in np.ndindex(2, 3):
        h, target = np.asarray(hidden[place]), int(TARGETS[place])
        score = word_vectors[target] @ h + shift - np.log(4) - log_q(recipe, SPELLED[target])
        expected = -np.log(references.sigmoid(score))
        for word in noise_ids[place]:
            score = noise_vectors[word] @ h + shift - log_expected[word]
            expected -= np.log(references.sigmoid(-score))
        np.testing.assert_allclose(loss[place], expected, rtol=1e-5)
    weights = jnp.asarray([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])
    total = head.weighted_loss(params, tables, hidden, TARGETS, weights, key=key)
    np.testing.assert_allclose(total, np.sum(np.asarray(weights) * loss), rtol=1e-10)


def test_no_parameter_is_of_a_word():
    head = CNNSoftmax(sampled=NCE(noise=LetterNoise(), samples=4))
    shapes = [
        jax.eval_shape(lambda key, words=words: head.init(key, SIZE, words), jax.random.key(0))
        for words in (WORDS, examples.plain_lexicon())
    ]
    assert shapes[0] == shapes[1]


def test_where_spellings_cannot_be_noise_it_is_said():
    with pytest.raises(UserError, match="only a head that reads letters"):
        NCE(noise=LetterNoise()).tables(WORDS)
    for head in (ImportanceSampling(noise=LetterNoise()), BlackOut(noise=LetterNoise())):
        with pytest.raises(UserError, match="give NCE with distinct=False"):
            CNNSoftmax(sampled=head).tables(WORDS)
    with pytest.raises(UserError, match="distinct=False"):
        CNNSoftmax(sampled=NCE(noise=LetterNoise(), distinct=True)).tables(WORDS)
    with pytest.raises(UserError, match="correction=0"):
        CNNSoftmax(correction=2, sampled=NCE(noise=LetterNoise())).tables(WORDS)
    with pytest.raises(UserError, match=r"smoothing of LetterNoise is 0\.0"):
        LetterNoise(smoothing=0.0)
    with pytest.raises(UserError, match="power of LetterNoise is 400"):
        LetterNoise(power=400.0)
    with pytest.raises(UserError, match="order of LetterNoise is 0"):
        LetterNoise(order=0)
    with pytest.raises(UserError, match="order of LetterNoise is 9, too high for 262 letters"):
        LetterNoise(order=9).tables(WORDS, Spelling())


# ------------------------------------------------------------ noise of known words, by hand


def test_probabilities_by_hand():
    np.testing.assert_allclose(UniformNoise().probabilities([4, 1, 2]), [1 / 3] * 3)
    # Ranks: the second word first, then the two of equal count in their order.
    probabilities = LogUniformNoise().probabilities([2, 9, 2])
    np.testing.assert_allclose(probabilities, np.log([3 / 2, 2, 4 / 3]) / np.log(4))
    np.testing.assert_allclose(
        UnigramNoise(smoothing=0).probabilities([1, 3, 4]), [1 / 8, 3 / 8, 1 / 2]
    )
    probabilities = UnigramNoise(power=0.5, smoothing=1).probabilities([0, 3, 8])
    np.testing.assert_allclose(probabilities, [1 / 6, 2 / 6, 3 / 6])


def test_words_without_mass_are_refused():
    with pytest.raises(UserError, match="smoothing of UnigramNoise above 0"):
        UnigramNoise(smoothing=0).probabilities([5, 0, 90])


def test_an_unknown_unit_of_noise_is_refused():
    with pytest.raises(
        UserError, match="noise_per of ImportanceSampling is 'word': give one of batch, row, token"
    ):
        ImportanceSampling(noise_per="word")


def test_negative_counts_are_named():
    with pytest.raises(ValueError, match=r"^counts has -2 at \[1\]: give occurrences, at least 0$"):
        UnigramNoise().probabilities(np.array([3, -2]))


def test_counts_of_ones_own_noise_are_no_probabilities():
    class Counted(Noise):
        def probabilities(self, counts):
            return counts

    head = NCE(noise=Counted(), samples=2)
    with pytest.raises(ValueError, match=r"^the probabilities sum to .*: divide them, or counts"):
        head.tables(examples.lexicon())
