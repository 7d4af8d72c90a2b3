"""The log-linear head trained on draws of its background, against sums over all words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.base.arrays.random_keys import Keys
from zoo.errors import UserError
from zoo.heads import LogLinear, SampledLogLinear
from zoo.lexicon import with_features
from zoo.priors import KneserNey

D = 7


def make_lexicon():
    """13 words with 4 tags, of which 5 have a feature of their own, and an uneven background."""
    random = np.random.default_rng(1)
    features = [
        {f"tag {word % 4}": 1.0} | ({f"name {word}": 0.5} if word < 5 else {}) for word in range(13)
    ]
    background = random.uniform(0.2, 2, 13)
    lexicon = examples.plain_lexicon(13)
    return with_features(lexicon, features, np.log(background / background.sum()))


LEXICON = make_lexicon()


def problem(head, shape=(2, 3)):
    random = np.random.default_rng(2)
    params = head.init(jax.random.key(0), D, LEXICON)
    params = jax.tree.map(lambda leaf: jnp.asarray(random.normal(0, 0.4, leaf.shape)), params)
    hidden = jnp.asarray(random.normal(size=(*shape, D)))
    targets = jnp.asarray(random.integers(0, 13, shape))
    return params, head.tables(LEXICON), hidden, targets


def phi():
    """[V, F] of the lexicon, by its names."""
    dense = np.zeros((13, len(LEXICON.feature_names)))
    signature, members = LEXICON.signatures
    for word in range(13):
        ids, values = members[signature[word]]
        dense[word, ids] = values
    return dense


def adaptors(params, hidden):
    weights, bias, hidden = map(np.asarray, (params["weights"], params["bias"], hidden))
    return hidden @ weights.T + bias


def test_importance_sampling_is_the_formula_of_the_draws(float64):
    head = SampledLogLinear(samples=5, noise_per="token")
    params, tables, hidden, targets = problem(head)
    slots = np.zeros((2, 3, 5), int)

    def fixed(tables, key, shape, draws, *, per, distinct=False):
        words = np.random.default_rng(9).integers(0, tables["log_q"].shape[0], (*shape, draws))
        slots[:] = words
        return type("Drawn", (), {"words": jnp.asarray(words)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.heads.sampled_log_linear.sample_noise", fixed)
        loss = jax.jit(head.loss)(params, tables, hidden, targets, key=jax.random.key(1))
    features, signature = phi(), LEXICON.signatures[0]
    first_words = np.array([np.flatnonzero(signature == s)[0] for s in range(max(signature) + 1)])
    a = adaptors(params, hidden)
    for place in np.ndindex(2, 3):
        scores = [a[place] @ features[first_words[s]] for s in slots[place]]
        target = int(targets[place])
        log_background = LEXICON.log_background[target]
        true = a[place] @ features[target]  # the target is one of the slots
        expected = np.log(np.mean(np.exp([true, *scores]))) - true - log_background
        np.testing.assert_allclose(loss[place], expected, rtol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("per", ["batch", "row", "token"])
def test_many_draws_are_the_exact_loss_and_gradient(float64, per):
    head, exact = SampledLogLinear(samples=30_000, noise_per=per), LogLinear()
    params, tables, hidden, targets = problem(head)
    weights = jnp.asarray([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])

    def evaluate(evaluated_head, tables, **options):
        def loss(params, hidden):
            return evaluated_head.weighted_loss(params, tables, hidden, targets, weights, **options)

        return jax.value_and_grad(loss, argnums=(0, 1))(params, hidden)

    sampled = evaluate(head, tables, key=jax.random.key(3))
    expected = evaluate(exact, exact.tables(LEXICON))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=0.06), sampled, expected)


@pytest.mark.slow
def test_expected_gradient_is_zero_where_the_model_is_the_truth(float64, monkeypatch):
    """Summed over all targets of p and all pairs of draws of b, of which p's words are rare."""
    b, p = np.array([0.9, 0.07, 0.02, 0.01]), np.array([0.1, 0.2, 0.3, 0.4])
    names = [{f"name {word}": 1.0} for word in range(4)]
    lexicon = with_features(examples.plain_lexicon(4), names, np.log(b))
    target, *draws = np.indices((4, 4, 4)).reshape(3, -1)
    noise_sample = type(
        "Drawn", (), {"words": jnp.asarray(lexicon.signatures[0][np.stack(draws, -1)])}
    )
    monkeypatch.setattr("zoo.heads.sampled_log_linear.sample_noise", lambda *a, **k: noise_sample)
    head = SampledLogLinear(samples=2, noise_per="token", initial_scale=0.0)
    params, tables = head.init(jax.random.key(0), D, lexicon), head.tables(lexicon)
    chances = jnp.asarray(p[target] * b[draws[0]] * b[draws[1]])

    def loss(bias):
        arguments = {**params, "bias": bias}, tables, jnp.ones((64, D)), jnp.asarray(target)
        return head.weighted_loss(*arguments, chances, key=jax.random.key(1))

    feature_ids = [lexicon.feature_names.index(f"name {word}") for word in range(4)]
    truth = np.zeros(4)
    truth[feature_ids] = np.log(p / b)
    gradient = jax.grad(loss)
    np.testing.assert_allclose(gradient(jnp.asarray(truth)), 0, atol=1e-7)
    assert np.abs(gradient(jnp.zeros(4))).max() > 0.1


@pytest.mark.slow
def test_few_draws_are_too_high_in_the_mean_over_targets_of_the_model(float64):
    head = SampledLogLinear(samples=2, noise_per="token")
    params, tables, hidden, _ = problem(head, (4_000, 1))
    hidden = hidden[:1].repeat(4_000, 0)
    targets = head.sample(params, tables, hidden, jax.random.key(4))
    losses = head.loss(params, tables, hidden, targets, key=jax.random.key(5))
    exact = -head.log_prob(params, tables, hidden, targets)
    difference = np.asarray(losses - exact)
    assert difference.mean() > 3 * difference.std() / np.sqrt(4_000)


@pytest.mark.slow
def test_contrastive_divergence_of_long_chains_has_the_exact_gradient_in_the_mean(float64):
    head = SampledLogLinear(estimate="contrastive", samples=30, noise_per="token")
    params, tables, hidden, targets = problem(head, (4_000, 1))
    hidden, targets = hidden[:1].repeat(4_000, 0), targets[:1].repeat(4_000, 0)

    def bias_gradient(evaluated_head, tables, count, **options):
        def loss(bias):
            params_and_bias = {**params, "bias": bias}
            losses = evaluated_head.loss(
                params_and_bias, tables, hidden[:count], targets[:count], **options
            )
            return losses.mean()

        return jax.grad(loss)(params["bias"])

    gradient = bias_gradient(head, tables, 4_000, key=jax.random.key(6))
    exact = LogLinear()
    expected = bias_gradient(exact, exact.tables(LEXICON), 1)
    np.testing.assert_allclose(gradient, expected, atol=0.03)
    assert np.abs(expected).max() > 0.1


@pytest.mark.slow
def test_a_chain_that_stays_has_no_loss_and_no_gradient(float64):
    head = SampledLogLinear(estimate="contrastive", samples=1)
    params, tables, hidden, targets = problem(head)
    # The target's tag is so probable that no proposal of another is taken.
    bias = np.full(params["bias"].shape, -300.0)
    bias[[LEXICON.feature_names.index(f"tag {word % 4}") for word in (1,)]] = 300.0
    params = {**params, "bias": jnp.asarray(bias)}
    targets = jnp.full((2, 3), 9)  # a word of tag 1 without a name

    def loss(params):
        return head.loss(params, tables, hidden, targets, key=jax.random.key(2)).sum()

    value, slopes = jax.value_and_grad(loss)(params)
    assert float(value) == 0
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(slopes))


@pytest.mark.slow
def test_chains_are_drawn_for_a_row_wherever_it_lies():
    head = SampledLogLinear(estimate="contrastive", samples=3)
    params, tables, hidden, targets = problem(head, (4, 3))
    keys = Keys.from_key(jax.random.key(7), 4)
    losses = head.loss(params, tables, hidden, targets, key=keys)
    last_keys = Keys(keys.batch, keys.rows[2:])
    last_losses = head.loss(params, tables, hidden[2:], targets[2:], key=last_keys)
    np.testing.assert_allclose(last_losses, losses[2:], rtol=1e-6)


def test_wrong_settings_are_refused():
    with pytest.raises(UserError, match="samples of SampledLogLinear is 0"):
        SampledLogLinear(samples=0)
    with pytest.raises(UserError, match="estimate of SampledLogLinear is 'exact'"):
        SampledLogLinear(estimate="exact")
    with pytest.raises(UserError, match="background of SampledLogLinear is a KneserNey"):
        SampledLogLinear(background=KneserNey())
    head = SampledLogLinear()
    with pytest.raises(ValueError, match="give it a key"):
        head.loss(*problem(head))
