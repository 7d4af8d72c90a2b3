"""Label smoothing and the penalty on log Z, against the formula in numpy and float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo import heads
from zoo.errors import UserError

SIZE, EPSILON, Z_LOSS = 5, 0.3, 0.07
HEADS = {
    "softmax": heads.Softmax(label_smoothing=EPSILON, z_loss=Z_LOSS),
    "without bias": heads.Softmax(bias=False, label_smoothing=EPSILON),
    "self-normalised": heads.SelfNormalisedSoftmax(z_loss=Z_LOSS),
}


def formula(head, params, hidden, targets, epsilon, penalty):
    """sum_v q(v) (log Z - o_v) + penalty log^2 Z, [N], q the target smoothed."""
    logits = np.asarray(hidden) @ np.asarray(params["weights"]).T
    logits = logits + (np.asarray(params["bias"]) if head.bias else 0)
    log_z = np.log(np.exp(logits).sum(-1))
    smoothed = (1 - epsilon) * np.eye(13)[np.asarray(targets)] + epsilon / 13
    return (smoothed * (log_z[:, None] - logits)).sum(-1) + penalty * log_z**2


@pytest.mark.parametrize("name", HEADS)
def test_values_and_gradients_are_the_formula(name, float64, random):
    head, lexicon = HEADS[name], examples.plain_lexicon()
    params = examples.random_params(head, random, SIZE, lexicon)
    hidden, targets = jnp.asarray(random.normal(size=(3, SIZE))), jnp.array([0, 12, 4])
    weights = jnp.array([1.0, 0.5, 2.0])
    numbers = head.label_smoothing, Z_LOSS if head.bias else 0
    np.testing.assert_allclose(
        jax.jit(head.loss)(params, {}, hidden, targets),
        formula(head, params, hidden, targets, *numbers),
        rtol=1e-12,
    )

    def weighted(arrays):
        losses = formula(head, arrays, arrays["hidden"], targets, *numbers)
        return (np.asarray(weights) * losses).sum()

    def loss(params, hidden):
        return head.weighted_loss(params, {}, hidden, targets, weights)

    arrays = {**params, "hidden": hidden}
    value, (params_gradient, hidden_gradient) = jax.jit(jax.value_and_grad(loss, (0, 1)))(
        params, hidden
    )
    np.testing.assert_allclose(value, weighted(arrays), rtol=1e-12)
    expected = references.finite_differences(weighted, arrays)
    np.testing.assert_allclose(hidden_gradient, expected["hidden"], rtol=1e-6, atol=1e-7)
    for parameter, gradient in params_gradient.items():
        np.testing.assert_allclose(gradient, expected[parameter], rtol=1e-6, atol=1e-7)
    # What is reported is without them.
    plain = heads.Softmax(bias=head.bias).log_prob(params, {}, hidden, targets)
    np.testing.assert_array_equal(head.log_prob(params, {}, hidden, targets), plain)


def test_a_self_normalised_head_starts_so(random):
    """Weights of +-0.05 move log Z by little: the bias holds it at 0, where log 13 is 2.6."""
    head, lexicon = heads.SelfNormalisedSoftmax(), examples.plain_lexicon()
    params = head.init(jax.random.key(0), SIZE, lexicon)
    hidden = jnp.asarray(random.uniform(-1, 1, (6, SIZE)), jnp.float32)
    targets = jnp.arange(6)
    log_prob, log_z = head.log_prob_and_log_z(params, head.tables(lexicon), hidden, targets)
    np.testing.assert_allclose(log_z, 0, atol=0.05)
    np.testing.assert_allclose(log_prob, -np.log(13), atol=0.3)


@pytest.mark.slow
def test_padding_has_no_part():
    head, lexicon = HEADS["softmax"], examples.plain_lexicon()
    params = head.init(jax.random.key(0), SIZE, lexicon)
    hidden, targets = jnp.ones((2, SIZE)).at[1].set(jnp.nan), jnp.array([3, -100])

    def loss(params, hidden, targets, weights):
        return head.weighted_loss(params, {}, hidden, targets, weights)

    padded = jax.value_and_grad(loss)(params, hidden, targets, jnp.array([1.0, 0.0]))
    expected = jax.value_and_grad(loss)(params, hidden[:1], targets[:1], jnp.ones(1))
    for leaf, expected_leaf in zip(jax.tree.leaves(padded), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-5, atol=1e-7)


def test_what_is_trained_has_its_name():
    assert heads.Softmax().loss_name == "loss"
    name = "cross-entropy with label smoothing and log Z penalty"
    assert HEADS["softmax"].loss_name == name
    assert HEADS["self-normalised"].loss_name == "cross-entropy with log Z penalty"


def test_wrong_numbers_are_refused():
    with pytest.raises(UserError, match=r"label_smoothing of Softmax is 1\.0: give at least 0"):
        heads.Softmax(label_smoothing=1.0)
    with pytest.raises(UserError, match="z_loss of MixtureOfContexts is -1: give at least 0"):
        heads.MixtureOfContexts(z_loss=-1)
    with pytest.raises(UserError, match="bias of SelfNormalisedSoftmax is False"):
        heads.SelfNormalisedSoftmax(bias=False)
