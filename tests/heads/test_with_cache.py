"""The continuous cache, by a loop over the pairs of a text."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.cores import LSTM
from zoo.decoding import BeamSearch, sample, steps
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import AdaptiveSoftmax, LogLinear, MixtureOfSoftmaxes, Softmax, WithCache, WithExpert
from zoo.heads.with_cache import MemoryContext
from zoo.models import LanguageModel, SequenceToSequence
from zoo.priors import KnowledgeBase

SIZE, MEMORY, FLATNESS, WEIGHT = 7, 4, 0.8, 0.3
WORDS = np.array([[1, 12, 3, 3, 12, 7, 3, 0, 12, 5], [5, 5, 2, 9, 5, 5, 1, 2, 2, 5]])
TARGETS = np.concatenate([WORDS[:, 1:], [[3], [2]]], axis=1)
RESET = np.zeros((2, 10), bool)
RESET[0, 0] = RESET[1, [0, 6]] = True
HEAD = WithCache(Softmax(), size=MEMORY, flatness=FLATNESS, weight=WEIGHT)
MODEL = LanguageModel(Lookup(5), LSTM(SIZE), HEAD)


def expected_log_probs(params, hidden, words, reset):
    """log p' of every word, [B, T, V]: a list of pairs for each row, the last MEMORY of them."""
    weights, bias = (np.asarray(params["head"][name]) for name in ("weights", "bias"))
    log_probs = []
    for row in range(len(words)):
        pairs, row_log_probs = [], []
        for position, word in enumerate(words[row]):
            if reset[row, position]:
                pairs = []
            elif position:
                pairs.append((hidden[row, position - 1], word))
            log_p = references.softmax_log_probs(hidden[row, position][None], weights, bias)[0]
            p = np.exp(log_p)
            if pairs:
                cache = np.zeros_like(p)
                for state, after in pairs[-MEMORY:]:
                    cache[after] += np.exp(FLATNESS * hidden[row, position] @ state)
                p = (1 - WEIGHT) * p + WEIGHT * cache / cache.sum()
            row_log_probs.append(np.log(p))
        log_probs.append(row_log_probs)
    return np.array(log_probs)


def problem(random):
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(MODEL, random, lexicon)
    core = MODEL.core.initial_carry(2)
    hidden, _ = references.lstm(
        np.asarray(params["embedding"]["table"])[WORDS], params["core"], core, RESET
    )
    return lexicon, params, expected_log_probs(params, hidden, WORDS, RESET)


@jax.jit
def in_window(params, tables, words, targets, reset, carry):
    hidden, context, after = MODEL.states(params, tables, words, carry, reset=reset)
    head = MODEL.head_params(params), tables["head"]
    target_log_probs = HEAD.log_prob(*head, hidden, targets, context=context)
    return target_log_probs, HEAD.log_probs(*head, hidden, context=context), after


def in_windows(lengths, params, tables):
    """log p of the targets and of all words, window by window."""
    carry, start, target_log_probs, all_log_probs = MODEL.initial_carry(2), 0, [], []
    for length in lengths:
        window = slice(start, start + length)
        columns = (words[:, window] for words in (WORDS, TARGETS, RESET))
        log_prob, log_probs, carry = in_window(params, tables, *map(jnp.asarray, columns), carry)
        target_log_probs.append(log_prob)
        all_log_probs.append(log_probs)
        start += length
    return np.concatenate(target_log_probs, axis=1), np.concatenate(all_log_probs, axis=1)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "lengths", [[10], [1] * 10, [6, 1, 3], *slow([3, 7])], ids=["whole", "steps", "three", "two"]
)
def test_probabilities_are_those_of_a_loop_however_the_text_is_cut(random, lengths):
    """Steps of one word are what generation, beams and trees of prefixes take."""
    lexicon, params, expected = problem(random)
    target_log_probs, all_log_probs = in_windows(lengths, params, MODEL.tables(lexicon))
    np.testing.assert_allclose(all_log_probs, expected, rtol=1e-9)
    expected_target_log_probs = np.take_along_axis(expected, TARGETS[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(target_log_probs, expected_target_log_probs, rtol=1e-9)
    np.testing.assert_allclose(np.exp(all_log_probs).sum(axis=-1), 1, rtol=1e-9)


@pytest.mark.parametrize("wrong", [-1, 13])
def test_a_target_that_is_no_word_is_refused_or_nan(random, wrong):
    lexicon, params, _ = problem(random)
    tables, bad = MODEL.tables(lexicon), jnp.asarray(TARGETS).at[1, 2].set(wrong)
    words, reset, carry = jnp.asarray(WORDS), jnp.asarray(RESET), MODEL.initial_carry(2)
    log_prob, _, _ = in_window(params, tables, words, bad, reset, carry)
    np.testing.assert_array_equal(np.isnan(log_prob), bad == wrong)
    states = jax.jit(functools.partial(MODEL.states, reset=reset))
    hidden, context, _ = states(params, tables, words, carry)
    with pytest.raises(ValueError, match=rf"WithCache.log_prob: targets has {wrong} at \[1, 2\]"):
        HEAD.log_prob(MODEL.head_params(params), tables["head"], hidden, bad, context=context)


@pytest.mark.usefixtures("float64")
def test_gradients_are_finite_differences_through_the_memory_as_well(random):
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(MODEL, random, lexicon)
    words, targets, reset = map(jnp.asarray, (WORDS, TARGETS, RESET))

    @jax.jit
    def total(params):
        carry, tables = MODEL.initial_carry(2), MODEL.tables(lexicon)
        return MODEL.log_prob(params, tables, words, targets, carry, reset=reset)[0].sum()

    gradients, expected = (
        jax.grad(total)(params),
        examples.finite_differences_of_tree(total, params),
    )
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-7), gradients, expected)


@pytest.mark.usefixtures("float64")
def test_beams_and_greedy_texts_remember_what_they_have_read(random):
    """Each hypothesis has a memory of its own, when a search repeats and drops rows."""
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(MODEL, random, lexicon)
    step = steps.from_language_model(MODEL, params, MODEL.tables(lexicon))
    first, boundary, longest = np.array([3, 9]), 0, 5

    def log_prob(start, words):
        read = np.array([[start, *words[:-1]]])
        reset = np.zeros(read.shape, bool)
        carry = MODEL.core.initial_carry(1)
        table = np.asarray(params["embedding"]["table"])
        hidden, _ = references.lstm(table[read], params["core"], carry, reset)
        word_log_probs = expected_log_probs(params, hidden, read, reset)[0]
        return sum(word_log_probs[place, word] for place, word in enumerate(words))

    search = BeamSearch(beam=4, nbest=3, longest=longest)
    hypotheses = search.search(step, first, MODEL.initial_carry(2), boundary=boundary)
    greedy, greedy_log_probs = sample(
        step, first, MODEL.initial_carry(2), jax.random.key(0), longest, temperature=0
    )
    for row, start in enumerate(first):
        for words, length, score in zip(
            hypotheses.words[row], hypotheses.lengths[row], hypotheses.log_prob[row], strict=True
        ):
            np.testing.assert_allclose(score, log_prob(start, words[:length]), rtol=1e-8)
        np.testing.assert_allclose(
            greedy_log_probs[row].sum(), log_prob(start, greedy[row]), rtol=1e-8
        )


def test_a_tied_head_and_a_mixture_have_a_cache_as_well(random):
    for inner, embedding in (
        (Softmax(tied=True), Lookup(SIZE)),
        (MixtureOfSoftmaxes(components=2), Lookup(5)),
    ):
        model = LanguageModel(embedding, LSTM(SIZE), WithCache(inner, size=3, weight=0.4))
        plain = LanguageModel(embedding, LSTM(SIZE), inner)
        lexicon = examples.plain_lexicon(13)
        params = examples.random_params(model, random, lexicon)
        assert jax.tree.structure(params) == jax.tree.structure(
            examples.random_params(plain, random, lexicon)
        )
        words, targets = jnp.asarray(WORDS), jnp.asarray(TARGETS)
        cached, without = (
            jax.jit(language_model.log_prob)(
                params,
                language_model.tables(lexicon),
                words,
                targets,
                language_model.initial_carry(2),
            )[0]
            for language_model in (model, plain)
        )
        np.testing.assert_allclose(cached[:, 0], without[:, 0], rtol=1e-5)  # nothing to remember
        assert (cached >= np.log(0.6) + without - 1e-5).all()
        assert np.abs(cached - without)[:, 1:].min() > 1e-3


def test_training_is_that_of_the_inner_head(random):
    plain = LanguageModel(MODEL.embedding, MODEL.core, HEAD.head)
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(MODEL, random, lexicon)
    arguments = jnp.asarray(WORDS), jnp.asarray(TARGETS), jnp.ones((2, 10))

    def loss(params, model):
        carry = model.initial_carry(2)
        return model.weighted_loss(params, model.tables(lexicon), *arguments, carry)[0]

    gradient = jax.jit(jax.value_and_grad(loss), static_argnums=1)
    actual, expected = gradient(params, MODEL), gradient(params, plain)
    for leaf, expected_leaf in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_is_refused():
    for settings, message in (
        ({"size": 0}, "size"),
        ({"flatness": 0.0}, "flatness"),
        ({"weight": 1.0}, "weight"),
        ({"head": WithExpert(KnowledgeBase("facts.tsv"), LogLinear())}, "of its own: give a head"),
    ):
        with pytest.raises(UserError, match=message):
            WithCache(**settings)
    with pytest.raises(UserError, match="memory is for one long text"):
        SequenceToSequence(head=HEAD)


def test_a_cache_longer_than_the_memory_is_refused():
    model = LanguageModel(Lookup(5), LSTM(SIZE), WithCache(Softmax(), size=10**13))
    with pytest.raises(UserError, match=r"a cache of 10,000,000,000,000 states, of 7 numbers in 2"):
        model.initial_carry(2)


def test_a_loss_looks_at_the_arrays_of_the_inner_head(random):
    """Tables of 20 words for parameters of 13."""
    head = WithCache(AdaptiveSoftmax(cutoffs=(3, 8)))
    params = head.init(jax.random.key(0), SIZE, examples.plain_lexicon(13))
    tables = head.tables(examples.plain_lexicon(20))
    arguments = params, tables, random.normal(size=(2, SIZE)), jnp.array([0, 12])
    memory = MemoryContext(jnp.zeros((2, 1)), jnp.zeros((2, 1), jnp.int32))
    with pytest.raises(ValueError, match="words"):
        head.loss(*arguments, context=memory)
    with pytest.raises(ValueError, match="words"):
        head.weighted_loss(*arguments, jnp.ones(2), context=memory)


def test_a_context_is_what_the_memory_remembers(random):
    lexicon = examples.plain_lexicon(13)
    params, tables = HEAD.init(jax.random.key(0), SIZE, lexicon), HEAD.tables(lexicon)
    arguments = params, tables, random.normal(size=(2, SIZE)), jnp.array([0, 12])
    scores, words = jnp.zeros((2, 2)), jnp.zeros((2, 1), jnp.int32)
    with pytest.raises(TypeError, match="give the output of the background's `apply`, a Memory"):
        HEAD.log_prob(*arguments, context=scores)
    with pytest.raises(ValueError, match=r"scores of the shape \(2, 2\) for words of the shape"):
        HEAD.log_prob(*arguments, context=MemoryContext(scores, words))


def test_a_wrapper_takes_the_arguments_of_the_inner_head_by_name():
    head, lexicon = WithCache(Softmax()), examples.plain_lexicon(5)
    assert head.normalised_over(lexicon=lexicon) == "the 5 words of the lexicon"
    assert head.warnings(lexicon=lexicon) == {}
    assert head.scores_per_token(vocabulary=13) == 13
