"""Noise distributions: what is drawn is what is declared."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from zoo.base.arrays.random_keys import Keys
from zoo.heads import LogUniformNoise, UniformNoise, UnigramNoise
from zoo.losses import noise_sampling
from zoo.sources import files

COUNTS = np.array([5, 0, 90, 3, 3, 40, 1, 1, 7, 0, 12, 2, 30])
NOISES = {
    "uniform": UniformNoise(),
    "log-uniform": LogUniformNoise(),
    "unigram": UnigramNoise(),
    "unigram to a power": UnigramNoise(power=0.4, smoothing=0.1),
}


@pytest.fixture(params=NOISES)
def probabilities(request):
    return NOISES[request.param].probabilities(COUNTS)


def test_probabilities_sum_to_one(probabilities):
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-12)


def test_alias_cells_hold_the_distribution(probabilities):
    threshold, alias = noise_sampling.alias_table(probabilities)
    cells = np.zeros(13)
    for cell in range(13):
        cells[cell] += threshold[cell] / 13
        cells[alias[cell]] += (1 - threshold[cell]) / 13
    np.testing.assert_allclose(cells, probabilities, rtol=1e-12)


def test_frequencies_are_those_declared(probabilities):
    tables = noise_sampling.noise_tables(probabilities)
    draws = jax.jit(noise_sampling.draw_noise, static_argnums=2)(
        tables, jax.random.key(4), (200, 101)
    )
    observed = np.bincount(draws.ravel(), minlength=13)
    declared = np.exp(np.asarray(tables["log_q"], np.float64))
    result = scipy.stats.chisquare(observed, observed.sum() * declared / declared.sum())
    assert result.pvalue > 1e-3


@functools.partial(jax.jit, static_argnames=("rows", "draws", "distinct"))
def sample(tables, key, rows, draws, distinct):
    """Noise of each token, compiled once for all distributions."""
    return noise_sampling.sample_noise(tables, key, (rows,), draws, per="token", distinct=distinct)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("draws", [1, 3, 20])
def test_expected_counts_are_those_declared(probabilities, draws, distinct):
    """Mean counts over many samples, within five standard errors of the declared expectation."""
    tables, samples = noise_sampling.noise_tables(probabilities), 4000
    noise = sample(tables, jax.random.key(9), samples, draws, distinct)
    assert noise.words.shape == noise.mask.shape == (samples, draws)
    counts = np.zeros((samples, 13))
    np.add.at(counts, (np.arange(samples)[:, None], noise.words), noise.mask)
    if distinct:
        assert counts.max() == 1
    else:
        assert (counts.sum(1) == draws).all()
    declared = np.exp(noise_sampling.log_expected_count(tables["log_q"], draws, distinct))
    by_formula = 1 - (1 - probabilities) ** draws if distinct else draws * probabilities
    np.testing.assert_allclose(declared, by_formula, rtol=1e-4)
    errors = np.sqrt(counts.var(0) / samples) + 1e-3
    assert (np.abs(counts.mean(0) - declared) < 5 * errors).all()
    word_counts = np.asarray(declared)[noise.words]
    np.testing.assert_allclose(np.exp(noise.log_expected), word_counts, rtol=1e-5)


@pytest.mark.slow
def test_words_of_the_batch_do_not_depend_on_the_rows_and_others_do():
    tables = noise_sampling.noise_tables(UniformNoise().probabilities(np.ones(1000)))
    batch, rows = jax.random.key(0), jax.random.split(jax.random.key(1), 4)

    @functools.partial(jax.jit, static_argnums=1)
    def words(rows, unit):
        keys = Keys(batch, rows)
        shape = (len(rows), 5)
        return noise_sampling.sample_noise(tables, keys, shape, 6, per=unit, distinct=False).words

    assert words(rows, "batch").shape == (6,)
    np.testing.assert_array_equal(words(rows, "batch"), words(rows[2:], "batch"))
    for unit, shape in (("row", (4, 6)), ("token", (4, 5, 6))):
        batch_words = words(rows, unit)
        assert batch_words.shape == shape
        # A batch row draws the same words whichever batch rows are beside it.
        np.testing.assert_array_equal(batch_words[2:], words(rows[2:], unit))
        assert len(np.unique(batch_words)) > 0.9 * min(batch_words.size, 100)


def test_a_large_table_is_exact():
    counts = 1e7 / np.arange(1, 100_001)
    probabilities = UnigramNoise(power=0.75).probabilities(counts)
    threshold, alias = noise_sampling.alias_table(probabilities)
    cells = threshold.copy()
    np.add.at(cells, alias, 1 - threshold)
    np.testing.assert_allclose(cells / 100_000, probabilities, rtol=1e-9)


@pytest.mark.parametrize("log_q", [-39.0, -41.0, -90.0, -138.0])
def test_words_that_are_hardly_ever_drawn_are_expected_as_often_kept_or_dropped(log_q):
    """exp(log q) may be below any float32."""
    log_count = noise_sampling.log_expected_count(jnp.float32(log_q), 10, True)
    np.testing.assert_allclose(log_count, log_q + np.log(10), rtol=1e-6)


def test_one_certain_word_has_an_expected_count_of_one():
    assert float(noise_sampling.log_expected_count(jnp.zeros(()), 5, True)) == 0


@pytest.mark.realdata("lm1b/word_freq.npy")
@pytest.mark.parametrize("recipe", [LogUniformNoise(), UnigramNoise(), UnigramNoise(power=0.75)])
def test_samplers_over_the_billion_words_draw_what_they_declare(recipe):
    """Over the 793,471 counts of the 1 Billion Word benchmark, in 200 bins of like mass."""
    counts = np.load(files.find("lm1b/word_freq.npy"))
    probabilities = recipe.probabilities(counts)
    tables = noise_sampling.noise_tables(probabilities)
    draws = np.asarray(
        jax.jit(noise_sampling.draw_noise, static_argnums=2)(tables, jax.random.key(3), (10**6,))
    )
    declared = np.exp(np.asarray(tables["log_q"], np.float64))
    np.testing.assert_allclose(declared.sum(), 1, rtol=1e-6)
    order = np.argsort(-probabilities, kind="stable")
    bins = np.minimum((np.cumsum(probabilities[order]) * 200).astype(int), 199)
    bin_of_word = np.empty(len(counts), int)
    bin_of_word[order] = bins
    observed = np.bincount(bin_of_word[draws], minlength=200)
    expected = np.bincount(bin_of_word, weights=declared, minlength=200)
    filled = expected > 0
    result = scipy.stats.chisquare(
        observed[filled], 10**6 * expected[filled] / expected[filled].sum()
    )
    assert result.pvalue > 1e-3


def test_an_unknown_unit_is_refused():
    tables = noise_sampling.noise_tables(np.full(3, 1 / 3))
    with pytest.raises(ValueError, match=r"^per is 'word': give one of batch, row, token$"):
        noise_sampling.sample_noise(tables, jax.random.key(0), (2,), 3, per="word")


def test_a_single_token_has_no_rows():
    tables = noise_sampling.noise_tables(np.full(4, 0.25))
    with pytest.raises(ValueError, match="one token has no rows: give tokens"):
        noise_sampling.sample_noise(tables, jax.random.key(0), (), 3, per="row")


@pytest.mark.parametrize("per", ["batch", "row", "token"])
def test_noise_has_random_numbers_apart_from_those_of_dropout(per):
    """Dropout draws by the same keys, without the number folded in."""
    keys = Keys.from_key(jax.random.key(3), 3)
    drawn_by = noise_sampling.draw_per_unit(
        lambda key, shape: jax.random.key_data(key), keys, (3, 5), 7, per
    )
    used = keys.batch if per == "batch" else keys.rows
    folded = [jax.random.fold_in(key, 0x6E6F6973) for key in used.reshape(-1)]
    expected = np.array([jax.random.key_data(key) for key in folded])
    np.testing.assert_array_equal(drawn_by.reshape(expected.shape), expected)
