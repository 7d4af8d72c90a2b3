"""Many sources at a time, by a step that copies its source."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.decoding import BeamSearch
from zoo.decoding.batched_search import LONGEST_EXTRA, padded_length, translate
from zoo.errors import UserError

WORDS, BOUNDARY, WRONG = 9, 0, 0.2


def copy(sources, lengths, words, carry):
    """The next word of the source, or the word after it in the lexicon with probability WRONG."""
    sentence, position = carry
    column = sources.shape[1] - lengths[sentence] + position
    is_after_end = column >= sources.shape[1]
    word = jnp.where(
        is_after_end, BOUNDARY, sources[sentence, jnp.minimum(column, sources.shape[1] - 1)]
    )
    probs = (1 - WRONG) * jax.nn.one_hot(word, WORDS)
    probs += WRONG * jax.nn.one_hot((word + 1) % WORDS, WORDS)
    return jnp.log(probs), (sentence, position + 1)


class Start:
    def __init__(self):
        self.shapes = []

    def __call__(self, sources, lengths):
        self.shapes.append(sources.shape)
        step = jax.tree_util.Partial(copy, jnp.asarray(sources), jnp.asarray(lengths))
        return step, (jnp.arange(len(sources)), jnp.zeros(len(sources), jnp.int32))


@pytest.fixture
def sources(random):
    """Some of each length from 1 to 20, in no order, without the last word."""
    lengths = random.permutation(np.repeat(np.arange(1, 21), 2))
    return [random.integers(1, WORDS - 1, length).tolist() for length in lengths]


def test_translations_are_in_the_order_of_their_sources(sources):
    start, batch_sizes = Start(), []
    translations = translate(
        start, sources, BeamSearch(3, 2), boundary=BOUNDARY, batch=16, done=batch_sizes.append
    )
    assert [nbest[0].words for nbest in translations] == sources
    assert batch_sizes == [16, 16, 8] and start.shapes == [(16, 8), (16, 16), (16, 24)]
    for source, (best, second) in zip(sources, translations, strict=True):
        tokens = len(source) + 1
        np.testing.assert_allclose(best.log_probs, [np.log(1 - WRONG)] * tokens, rtol=1e-5)
        np.testing.assert_allclose(best.log_prob, tokens * np.log(1 - WRONG), rtol=1e-5)
        assert best.complete and best.score == best.log_prob
        # One word is wrong, or the end came later.
        expected = (tokens - 1) * np.log(1 - WRONG) + np.log(WRONG)
        np.testing.assert_allclose(second.log_prob, expected, rtol=1e-5)


def test_few_sources_are_a_small_batch(sources):
    start = Start()
    translations = translate(start, sources[:3], BeamSearch(2), boundary=BOUNDARY)
    assert [nbest[0].words for nbest in translations] == sources[:3]
    assert start.shapes[0][0] == 4
    assert translate(start, [], BeamSearch(2), boundary=BOUNDARY) == []


@pytest.mark.slow
def test_copies_that_fill_the_last_batch_are_not_searched(random):
    """100 sentences call the step as often as the first 96 and the last 4."""
    lengths = np.sort(random.integers(4, 9, 100))
    sources = [random.integers(1, WORDS - 1, length).tolist() for length in lengths]
    calls = []

    def start(sources, lengths):
        step, carry = Start()(sources, lengths)

        def counting_step(words, carry):
            jax.debug.callback(lambda: calls.append(len(words)))
            return step(words, carry)

        return counting_step, carry

    def search(batch_sources):
        calls.clear()
        translations = translate(
            start, batch_sources, BeamSearch(12, 2), boundary=BOUNDARY, batch=32
        )
        jax.effects_barrier()
        return translations, len(calls)

    (
        (translations, all_calls),
        (first_translations, first_calls),
        (last_translations, last_calls),
    ) = map(search, (sources, sources[:96], sources[96:]))
    assert translations == first_translations + last_translations
    assert (
        all_calls == first_calls + last_calls and 0 < last_calls <= 2 * lengths[-1] + LONGEST_EXTRA
    )


@pytest.mark.slow
def test_lengths_are_bounded_by_the_source(sources):
    settings = BeamSearch(2, longest=12)
    translations = translate(Start(), sources, settings, boundary=BOUNDARY, ratio=0.5, extra=3)
    for source, (best,) in zip(sources, translations, strict=True):
        limit = min(12, len(source) // 2 + 3)
        assert best.complete == (len(source) < limit)
        assert best.words == source[:limit]


def test_sizes_are_few():
    sizes = [padded_length(length) for length in range(1, 200)]
    assert sorted(set(sizes)) == [8, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    assert all(size >= length for length, size in enumerate(sizes, 1))


def test_an_empty_source_is_refused():
    with pytest.raises(ValueError, match="source 1 is empty"):
        translate(Start(), [[1], []], BeamSearch(2), boundary=BOUNDARY)


@pytest.mark.parametrize("ratio", [0, -1.5, np.inf, np.nan])
def test_a_ratio_that_bounds_nothing_is_refused(sources, ratio):
    with pytest.raises(UserError, match="the ratio of the longest translation"):
        translate(Start(), sources, BeamSearch(2), boundary=BOUNDARY, ratio=ratio)
