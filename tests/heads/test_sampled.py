"""Sampled losses: against loops, at their optima, and where they must not be fooled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.base.arrays.random_keys import Keys
from zoo.heads import (
    NCE,
    BlackOut,
    ImportanceSampling,
    UnigramNoise,
)
from zoo.losses import blackout_loss, importance_loss, nce_loss, noise_sampling

SIZE, WORDS, DRAWS = 5, 13, 7
HEADS = {
    "NCE": NCE,
    "importance sampling": ImportanceSampling,
    "BlackOut": BlackOut,
}


def loss_by_hand(
    kind, distinct, true, noise_scores, log_expected_true, log_expected, is_kept, hits
):
    """One token's loss, draw by draw."""
    true = true - log_expected_true
    if kind is NCE:
        total = -np.log(references.sigmoid(true))
        for score, expected, keep in zip(noise_scores, log_expected, is_kept, strict=True):
            if keep:
                total -= np.log(1 - references.sigmoid(score - expected))
        return total
    inside = [
        score - expected
        for score, expected, keep, hit in zip(
            noise_scores, log_expected, is_kept, hits, strict=True
        )
        if keep and not (distinct and hit)
    ]
    log_z = references.log_sum_exp([true, *inside])
    loss = log_z - true
    if kind is BlackOut:
        loss -= sum(np.log(1 - np.exp(score - log_z)) for score in inside)
    return loss


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("name", "unit", "distinct"),
    [
        *[(name, "batch", True) for name in HEADS],
        ("NCE", "row", False),
        *slow(*(("NCE", unit, False) for unit in noise_sampling.UNITS if unit != "row")),
        ("importance sampling", "batch", False),
        ("BlackOut", "row", False),
        # Their parts are each in one of those above.
        pytest.param("importance sampling", "row", True, marks=pytest.mark.slow),
        pytest.param("BlackOut", "token", True, marks=pytest.mark.slow),
    ],
)
def test_losses_follow_the_formula_word_by_word(random, name, unit, distinct):
    kind, lexicon = HEADS[name], examples.plain_lexicon()
    head = kind(noise=UnigramNoise(power=0.5), samples=DRAWS, noise_per=unit, distinct=distinct)
    tables = head.tables(lexicon)
    params = examples.random_params(head, random, SIZE, lexicon)
    hidden, targets = random.normal(size=(3, 2, SIZE)), random.integers(WORDS, size=(3, 2))
    keys = Keys(jax.random.key(3), jax.random.split(jax.random.key(4), 3))
    loss = jax.jit(head.loss)(params, tables, jnp.asarray(hidden), jnp.asarray(targets), key=keys)
    noise_sample = noise_sampling.sample_noise(
        tables, keys, (3, 2), DRAWS, per=unit, distinct=distinct
    )
    if unit == "row":
        assert noise_sample.words.shape == (3, DRAWS)
        noise_sample = [x[:, None] for x in noise_sample]
    words, is_kept = (np.broadcast_to(x, (3, 2, DRAWS)) for x in noise_sample[:2])
    assert distinct != is_kept.all()
    assert (words == targets[..., None]).any()
    q = head.noise.probabilities(lexicon.counts)
    expected_counts = 1 - (1 - q) ** DRAWS if distinct else DRAWS * q
    scores = hidden @ np.asarray(params["weights"]).T + np.asarray(params["bias"])
    for place in np.ndindex(3, 2):
        expected = loss_by_hand(
            kind,
            distinct,
            scores[place][targets[place]],
            scores[place][words[place]],
            np.log(expected_counts[targets[place]]),
            np.log(expected_counts[words[place]]),
            is_kept[place],
            words[place] == targets[place],
        )
        np.testing.assert_allclose(loss[place], expected, rtol=1e-6)


@pytest.mark.usefixtures("float64")
def test_importance_sampling_of_every_word_is_the_exact_loss(random):
    hidden, weights = random.normal(size=(4, SIZE)), random.normal(size=(WORDS, SIZE))
    bias, targets = random.normal(size=WORDS), random.integers(WORDS, size=4)
    scores = jnp.asarray(hidden @ weights.T + bias)
    loss = importance_loss(
        scores[jnp.arange(4), targets],
        scores,
        jnp.zeros(4),
        jnp.zeros((4, WORDS)),
        jnp.arange(WORDS)[None] == jnp.asarray(targets)[:, None],
    )
    expected, _ = references.softmax_loss(hidden, weights, bias, targets)
    np.testing.assert_allclose(loss, expected, rtol=1e-10)


@pytest.mark.parametrize("log_partition", [0.0, 2.0])
@pytest.mark.usefixtures("float64")
def test_nce_recovers_the_distribution_and_normalises_itself(random, log_partition):
    """Gradient descent on the expected loss over data and noise ends at p."""
    p = random.dirichlet(np.full(WORDS, 0.8)) * 0.9 + 0.1 / WORDS
    q, draws = random.dirichlet(np.full(WORDS, 3.0)), 6
    log_expected = jnp.log(draws * jnp.asarray(q))

    def expected_loss(scores):
        """Each word as the data's with probability p and as the noise's q K times."""
        shifted = scores - log_partition
        data_loss = nce_loss(shifted, shifted[:, None], log_expected, log_expected[:, None], False)
        noise_loss = nce_loss(shifted, shifted[:, None], log_expected, log_expected[:, None], True)
        return jnp.sum(p * data_loss) + jnp.sum(draws * q * (noise_loss - data_loss))

    step = jax.jit(lambda scores: scores - 2.0 * jax.grad(expected_loss)(scores))
    scores = jnp.full(WORDS, log_partition - np.log(WORDS))
    for _ in range(3000):
        scores = step(scores)
    np.testing.assert_allclose(scores - log_partition, np.log(p), atol=1e-3)


def test_blackout_stays_finite_where_a_noise_word_has_all_the_mass():
    def loss(score):
        zero = jnp.zeros(1)
        return blackout_loss(zero, score[None, None], zero, zero[None], jnp.zeros((1, 1), bool))[0]

    value, gradient = jax.value_and_grad(loss)(jnp.asarray(80.0))
    assert np.isfinite(value)
    assert np.isfinite(gradient)


@pytest.mark.parametrize("log_partition", [0.0, 9.0])
def test_nce_starts_normalised(log_partition):
    head, lexicon = NCE(log_partition=log_partition, samples=3), examples.plain_lexicon()
    params = head.init(jax.random.key(0), SIZE, lexicon)
    np.testing.assert_allclose(params["bias"], log_partition - np.log(13), rtol=1e-6)
    hidden, targets = jnp.zeros((2, SIZE)), jnp.zeros(2, jnp.int32)
    _, log_z = head.log_prob_and_log_z(params, head.tables(lexicon), hidden, targets)
    np.testing.assert_allclose(log_z, 0, atol=1e-6)


def test_a_learned_partition_gets_a_gradient_and_enters_log_z(random):
    head, lexicon = NCE(learned_partition=True, samples=3), examples.plain_lexicon()
    params = head.init(jax.random.key(0), SIZE, lexicon)
    tables, hidden = head.tables(lexicon), jnp.asarray(random.normal(size=(4, SIZE)))
    targets = jnp.arange(4)
    gradient = jax.jit(
        jax.grad(
            lambda params: head.loss(params, tables, hidden, targets, key=jax.random.key(1)).sum()
        )
    )(params)
    assert abs(float(gradient["log_partition"])) > 0.01
    judge = jax.jit(head.log_prob_and_log_z)
    log_prob, log_z = judge(params, tables, hidden, targets)
    shifted_params = {**params, "log_partition": params["log_partition"] + 2}
    shifted_log_prob, shifted_log_z = judge(shifted_params, tables, hidden, targets)
    np.testing.assert_allclose(shifted_log_z, log_z - 2, rtol=1e-5)
    np.testing.assert_allclose(shifted_log_prob, log_prob, rtol=1e-6)
