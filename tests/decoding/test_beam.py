"""Beam search against all sequences, enumerated, and against a beam in a Python loop."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo.decoding import BeamSearch, Sampling, beam, sample
from zoo.errors import UserError

SENTENCES, WORDS, LONGEST, BOUNDARY = 3, 5, 4, 2
# Contexts are numbered as the nodes of a tree of all sequences.
CONTEXTS = sum(WORDS**length for length in range(LONGEST))


def next_word(tables, words, carry):
    """p(. | all words before), of each sentence by its own table [B, contexts, V]."""
    context, fresh, sentence = carry
    context = jnp.where(fresh, 0, WORDS * context + words + 1)
    return tables[sentence, context], (context, jnp.zeros_like(fresh), sentence)


def first_carry(sentences=SENTENCES):
    return jnp.zeros(sentences, jnp.int32), jnp.ones(sentences, bool), jnp.arange(sentences)


@pytest.fixture(params=[0.3, 3.0], ids=["peaked", "flat"])
def tables(request, random):
    """log p [B, contexts, V]; the first sentence has words of probability 0."""
    tables = random.dirichlet([request.param] * WORDS, (SENTENCES, CONTEXTS))
    tables[0, ::7, 1] = 0
    tables /= tables.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(tables, 1e-30) * (tables > 0)).astype(np.float32)


def token_log_probs(table, words):
    context, log_probs = 0, []
    for word in words:
        log_probs.append(float(table[context, word]))
        context = WORDS * context + int(word) + 1
    return log_probs


def norm(settings, length):
    return length**settings.length_normalisation


def enumerated(table, settings, longest):
    """{words: score} of all sequences that the settings allow, of probability above 0."""
    ordinary_words = [word for word in range(WORDS) if word != BOUNDARY]
    scores = {}
    for length in range(1, longest + 1):
        for words in itertools.product(ordinary_words, repeat=length - 1):
            last = [BOUNDARY] if length >= settings.shortest else []
            for word in last + (ordinary_words if length == longest else []):
                log_prob = sum(token_log_probs(table, (*words, word)))
                if log_prob > -np.inf:
                    scores[*words, word] = log_prob / norm(settings, length)
    return scores


def in_a_loop(table, settings, longest):
    """[(score, words)] of a beam that runs to the end, the best first."""
    hypotheses, finished = [(0.0, ())], []
    for length in range(1, longest + 1):
        longer = [
            (log_prob + word_log_prob, (*words, word))
            for log_prob, words in hypotheses
            for word, word_log_prob in enumerate(table[token_context(words)].astype(float))
            if word_log_prob > -np.inf and (word != BOUNDARY or length >= settings.shortest)
        ]
        longer.sort(reverse=True)
        ends = longer if settings.every_end else longer[: settings.beam]
        finished += [
            (log_prob / norm(settings, length), words)
            for log_prob, words in ends
            if words[-1] == BOUNDARY
        ]
        open_hypotheses = [hypothesis for hypothesis in longer if hypothesis[1][-1] != BOUNDARY]
        hypotheses = open_hypotheses[: settings.beam]
    finished += [(log_prob / norm(settings, longest), words) for log_prob, words in hypotheses]
    return sorted((hypothesis for hypothesis in finished if hypothesis[0] > -np.inf), reverse=True)[
        : settings.nbest
    ]


def token_context(words):
    context = 0
    for word in words:
        context = WORDS * context + word + 1
    return context


def search(settings, tables, longest=None, sentences=slice(None)):
    tables = jnp.asarray(tables[sentences])
    step = jax.tree_util.Partial(next_word, tables)
    words = np.full(len(tables), BOUNDARY)
    return settings.search(
        step, words, first_carry(len(tables)), boundary=BOUNDARY, longest=longest
    )


def sequences(hypotheses, sentence):
    """The words of each hypothesis that there is."""
    lengths = np.asarray(hypotheses.lengths[sentence])
    rows = np.asarray(hypotheses.words[sentence])
    return [tuple(row[:length].tolist()) for row, length in zip(rows, lengths, strict=True)]


@pytest.mark.parametrize(
    "fields",
    [
        {"length_normalisation": 0.6, "longest": 3},
        {"beam": 64, "every_end": True},
        *slow({"length_normalisation": 2.0, "shortest": 3}),
        *slow({}, {"length_normalisation": 1.0, "shortest": 2}, {"shortest": 4}),
    ],
    ids=str,
)
def test_a_wide_beam_finds_the_best_of_all_sequences(tables, fields):
    # All ways to go on have room, except where they are of the greatest length.
    settings = BeamSearch(**{"beam": 80, "nbest": 50, "longest": LONGEST, **fields})
    hypotheses = search(settings, tables)
    for sentence, table in enumerate(tables):
        scores = enumerated(table, settings, settings.longest)
        best = sorted(scores, key=scores.get, reverse=True)[:50]
        count = len(best)
        assert sequences(hypotheses, sentence)[:count] == best
        np.testing.assert_allclose(
            hypotheses.score[sentence, :count], [scores[words] for words in best], rtol=1e-5
        )
        np.testing.assert_array_equal(hypotheses.score[sentence, count:], -np.inf)
        assert hypotheses.missed[sentence] <= hypotheses.score[sentence, -1]
        is_complete = [words[-1] == BOUNDARY for words in best]
        assert hypotheses.complete[sentence, :count].tolist() == is_complete
        assert not hypotheses.complete[sentence, count:].any()


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize(("alpha", "every_end"), [(0.0, False), (1.0, False), (0.5, True)])
@pytest.mark.slow
def test_a_narrow_beam_finds_what_a_loop_that_runs_to_the_end_finds(
    tables, width, alpha, every_end
):
    settings = BeamSearch(width, min(width, 3), alpha, longest=LONGEST, every_end=every_end)
    hypotheses = search(settings, tables)
    for sentence, table in enumerate(tables):
        expected = in_a_loop(table, settings, LONGEST)
        words = sequences(hypotheses, sentence)[: len(expected)]
        assert words == [words for _, words in expected]
        np.testing.assert_allclose(
            hypotheses.score[sentence, : len(expected)], [score for score, _ in expected], rtol=1e-5
        )
        # Each token has its log-probability, and nothing comes after the last.
        for rank, sequence in enumerate(words):
            np.testing.assert_allclose(
                hypotheses.log_probs[sentence, rank, : len(sequence)],
                token_log_probs(table, sequence),
                rtol=1e-6,
            )
            np.testing.assert_array_equal(
                hypotheses.words[sentence, rank, len(sequence) :], BOUNDARY
            )
        np.testing.assert_allclose(
            hypotheses.log_probs[sentence].sum(axis=-1)[: len(words)],
            hypotheses.log_prob[sentence, : len(words)],
            rtol=1e-5,
        )
        # What was lost is not above the bound.
        scores = enumerated(table, settings, LONGEST)
        dropped_scores = [
            score for words, score in scores.items() if words not in sequences(hypotheses, sentence)
        ]
        assert (
            max(dropped_scores)
            <= max(hypotheses.missed[sentence], hypotheses.score[sentence, -1]) + 1e-5
        )


def test_a_beam_of_one_is_greedy(tables):
    words = np.full(SENTENCES, BOUNDARY)
    step = jax.tree_util.Partial(next_word, jnp.asarray(tables))
    greedy, _ = sample(
        step, words, first_carry(), jax.random.key(0), LONGEST, temperature=0, boundary=BOUNDARY
    )
    hypotheses = search(BeamSearch(1, longest=LONGEST), tables)
    np.testing.assert_array_equal(hypotheses.words[:, 0], greedy)


def test_a_batch_of_sentences_is_one_by_one(tables):
    settings = BeamSearch(3, 3, 0.7, longest=LONGEST)
    limits = np.array([4, 2, 3])
    hypotheses = search(settings, tables, limits)
    for sentence in range(SENTENCES):
        rows = slice(sentence, sentence + 1)
        single = search(settings, tables, limits[rows], rows)
        for name, leaf in hypotheses._asdict().items():
            np.testing.assert_array_equal(leaf[rows], getattr(single, name), err_msg=name)
        expected = in_a_loop(tables[sentence], settings, limits[sentence])
        assert sequences(hypotheses, sentence)[: len(expected)] == [words for _, words in expected]


# With 4 rows a call, the bound is computed after every third.
@pytest.mark.parametrize("rows", [pytest.param(beam.ROWS, marks=pytest.mark.slow), 4])
def test_more_rows_than_a_call_of_the_step_takes(random, monkeypatch, rows):
    """The step is called with some hypotheses at a time, and not with those that cannot matter."""
    monkeypatch.setattr(beam, "ROWS", rows)
    sentences, settings = 23, BeamSearch(5, 5, longest=LONGEST)
    tables = random.dirichlet([0.2] * WORDS, (sentences, CONTEXTS)).astype(np.float32)
    tables = np.log(np.maximum(tables, 1e-20))
    limits = random.integers(2, LONGEST + 1, sentences)
    call_rows = []

    def step(words, carry):
        jax.debug.callback(lambda sentence: call_rows.append(len(sentence)), carry[2])
        return next_word(jnp.asarray(tables), words, carry)

    words = np.full(sentences, BOUNDARY)
    hypotheses = settings.search(
        step, words, first_carry(sentences), boundary=BOUNDARY, longest=limits
    )
    jax.effects_barrier()
    for sentence, table in enumerate(tables):
        expected = in_a_loop(table, settings, limits[sentence])
        assert sequences(hypotheses, sentence) == [words for _, words in expected]
        np.testing.assert_allclose(hypotheses.score[sentence], [s for s, _ in expected], rtol=1e-5)
        scores = enumerated(table, settings, limits[sentence])
        dropped_scores = [
            score for words, score in scores.items() if words not in sequences(hypotheses, sentence)
        ]
        assert max(dropped_scores, default=-np.inf) <= max(
            hypotheses.missed[sentence] + 1e-5, hypotheses.score[sentence, -1] + 1e-5
        )
    assert set(call_rows) == {beam.ROWS} and sentences * settings.beam > beam.ROWS
    assert len(call_rows) < LONGEST * -(-sentences * settings.beam // beam.ROWS)
    # Where the bound is never computed, no hypothesis that is open is left out.
    monkeypatch.setattr(beam, "BOUNDS", 1e-3)
    bounded_calls = len(call_rows)
    unbounded = settings.search(
        lambda *state: step(*state),
        words,
        first_carry(sentences),
        boundary=BOUNDARY,
        longest=limits,
    )
    jax.effects_barrier()
    assert len(call_rows) - bounded_calls > bounded_calls or rows > 4
    np.testing.assert_array_equal(unbounded.words, hypotheses.words)


def first_order(tables, words, carry):
    """p(. | the word before), of each sentence by its own table [B, V, V]."""
    return tables[carry, words], carry


def all_strings(table, settings, longest):
    """[(score, words)] of all strings of probability above 0, the best first, in float64."""
    ordinary_words = [word for word in range(len(table)) if word != BOUNDARY]
    strings = []
    for length in range(1, longest + 1):
        for words in itertools.product(ordinary_words, repeat=length - 1):
            for last in range(len(table)) if length == longest else [BOUNDARY]:
                string = (*words, last)
                log_prob = sum(table[pair] for pair in itertools.pairwise((BOUNDARY, *string)))
                if log_prob > -np.inf:
                    strings.append((log_prob / norm(settings, length), string))
    return sorted(strings, reverse=True)


@pytest.mark.parametrize("alpha", [0.5, *slow(0.0, 1.0, 2.5)])
def test_a_narrow_beam_calls_exact_what_is_the_best_of_all_strings(alpha, random):
    # The first ends with 0.55 at once; its other word repeats itself almost surely, and wins
    # with length normalisation. The others are random, with words that like to repeat themselves.
    first_table = [[0.9989, 0, 0.0011], [0, 1, 0], [0.45, 0, 0.55]]
    random_tables = random.dirichlet([0.6] * 3, (40, 3)) + 2 * np.diag([1.0, 1.0, 0.0])
    tables = np.array([first_table, *(random_tables / random_tables.sum(axis=-1, keepdims=True))])
    with np.errstate(divide="ignore"):
        tables = np.log(tables)
    settings = BeamSearch(2, 1, alpha, longest=8)
    limits = np.resize([8, 7, 5], len(tables))
    step = jax.tree_util.Partial(first_order, jnp.asarray(tables, jnp.float32))
    words = np.full(len(tables), BOUNDARY)
    numbers = jnp.arange(len(tables))
    hypotheses = settings.search(step, words, numbers, boundary=BOUNDARY, longest=limits)

    best = [
        all_strings(table, settings, limit)[0] for table, limit in zip(tables, limits, strict=True)
    ]
    expected, string = best[0]
    # log 0.55 without normalisation, otherwise (log 0.45 + 7 log 0.9989) / norm(8).
    hand = np.log(0.55) if alpha == 0 else (np.log(0.45) + 7 * np.log(0.9989)) / norm(settings, 8)
    np.testing.assert_allclose(expected, hand, rtol=1e-12)
    assert string == ((BOUNDARY,) if alpha == 0 else (0,) * 8)
    exact = [*np.flatnonzero(hypotheses.missed <= hypotheses.score[:, 0])]
    assert 0 in exact and len(exact) >= 20
    for sentence in exact:
        score, string = best[sentence]
        assert sequences(hypotheses, sentence) == [string]
        np.testing.assert_allclose(hypotheses.score[sentence, 0], score, rtol=1e-5)


@pytest.mark.slow
def test_the_search_stops_when_no_open_hypothesis_can_win():
    """p(boundary) = 0.6 after any word: the best ends at once, the second after a word."""
    calls = []
    log_probs = jnp.log(jnp.array([0.3, 0.1, 0.6]))

    def step(words, carry):
        jax.debug.callback(lambda: calls.append(1))
        return jnp.tile(log_probs, (len(words), 1)), carry

    words, steps = np.full(2, 2), {}
    for nbest, alpha, longest in [(1, 0.0, 50), (2, 0.0, 50), (1, 1.0, 50), (1, 1.0, 3)]:
        calls.clear()
        settings = BeamSearch(2, nbest, alpha, longest=longest)
        hypotheses = settings.search(step, words, (), boundary=2)
        jax.effects_barrier()
        steps[nbest, alpha, longest] = len(calls)
        np.testing.assert_allclose(hypotheses.score[:, 0], np.log(0.6), rtol=1e-6)
    # Of two, 0.6 and 0.3 * 0.6 = 0.18: 0.09 is left of the open ones after two words. Normalised,
    # 0.6 is above 0.3 ** (t / longest) only when t > longest * log 0.6 / log 0.3 = 21.2.
    assert steps == {(1, 0.0, 50): 1, (2, 0.0, 50): 2, (1, 1.0, 50): 22, (1, 1.0, 3): 2}


def test_a_beam_that_has_more_room_than_there_are_sequences():
    """Of the boundary alone, and of one word beside it."""

    def step(log_probs, words, carry):
        return jnp.tile(log_probs, (len(words), 1)), carry

    settings = BeamSearch(7, 7, longest=3)
    boundary_step = jax.tree_util.Partial(step, jnp.zeros(1))
    hypotheses = settings.search(boundary_step, np.zeros(1), (), boundary=0)
    assert hypotheses.lengths.tolist() == [[1, 0, 0, 0, 0, 0, 0]]
    two_word_step = jax.tree_util.Partial(step, jnp.log(jnp.array([0.25, 0.75])))
    hypotheses = settings.search(two_word_step, np.zeros(1), (), boundary=0)
    assert hypotheses.words[0, :4].tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]]
    assert hypotheses.complete.tolist() == [[False, True, True, True, False, False, False]]
    np.testing.assert_allclose(
        np.exp(hypotheses.log_prob[0]), [0.75**3, 0.25, 0.1875, 0.140625, 0, 0, 0], rtol=1e-6
    )
    assert hypotheses.missed[0] == -np.inf


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"beam": 2, "nbest": 3}, "a beam of 2 cannot find 3 hypotheses: give 1 to 2"),
        ({"beam": 0, "nbest": 0}, "a beam of 0 cannot find 0"),
        ({"nbest": 0}, "cannot find 0"),
        ({"length_normalisation": -0.5}, "length_normalisation is -0.5"),
        ({"length_normalisation": float("nan")}, "length_normalisation is nan"),
        ({"shortest": 0}, "shortest 0 and longest 200"),
        ({"shortest": 5, "longest": 4}, "shortest 5 and longest 4"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(fields, message):
    with pytest.raises(UserError, match=message):
        BeamSearch(**fields)


def test_wrong_shapes_are_named():
    def step(words, carry):
        return jnp.zeros((len(words), 1, 3)), carry

    with pytest.raises(ValueError, match=r"carry has the shape \(4, 2\).* the 3 sentences"):
        BeamSearch().search(step, np.zeros(3), jnp.zeros((4, 2)), boundary=0)
    with pytest.raises(ValueError, match=r"shape \(36, 1, 3\) for 36 rows"):
        BeamSearch().search(step, np.zeros(3), jnp.zeros(3), boundary=0)


@pytest.mark.parametrize("boundary", [WORDS, -1])
def test_a_boundary_is_a_word(boundary):
    step = jax.tree_util.Partial(next_word, jnp.zeros((SENTENCES, CONTEXTS, WORDS)))
    arguments = step, np.full(SENTENCES, BOUNDARY), first_carry()
    message = f"boundary is {boundary}: give a word, from 0 to 4"
    with pytest.raises(ValueError, match=message):
        BeamSearch(beam=2, longest=2).search(*arguments, boundary=boundary)
    with pytest.raises(ValueError, match=message):
        Sampling(longest=2).search(*arguments, boundary=boundary)
    with pytest.raises(ValueError, match=message):
        sample(*arguments, jax.random.key(0), 2, boundary=boundary)
