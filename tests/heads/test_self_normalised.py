"""The softmax with a penalty on log Z: where it starts, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.errors import UserError
from zoo.heads import SelfNormalisedSoftmax

SIZE, WORDS = 5, 13


def test_it_starts_normalised(random):
    """Weights of +-0.05 move log Z by little: the bias holds it at 0, where log 13 is 2.6."""
    head, lexicon = SelfNormalisedSoftmax(), examples.plain_lexicon(WORDS)
    params = head.init(jax.random.key(0), SIZE, lexicon)
    hidden = jnp.asarray(random.uniform(-1, 1, (6, SIZE)), jnp.float32)
    targets = jnp.arange(6)
    log_prob, log_z = head.log_prob_and_log_z(params, head.tables(lexicon), hidden, targets)
    np.testing.assert_allclose(log_z, 0, atol=0.05)
    np.testing.assert_allclose(log_prob, -np.log(WORDS), atol=0.3)


@pytest.mark.usefixtures("float64")
def test_the_loss_has_the_penalty(random):
    head, lexicon = SelfNormalisedSoftmax(z_loss=0.3), examples.plain_lexicon(WORDS)
    params = examples.random_params(head, random, SIZE, lexicon)
    arguments = params, head.tables(lexicon), jnp.asarray(random.normal(size=(4, SIZE)))
    targets, weights = jnp.arange(4), jnp.asarray([1.0, 0.5, 0, 2])
    log_prob, log_z = head.log_prob_and_log_z(*arguments, targets)
    expected = -np.asarray(log_prob) + 0.3 * np.asarray(log_z) ** 2
    np.testing.assert_allclose(head.loss(*arguments, targets), expected, rtol=1e-12)
    total = head.weighted_loss(*arguments, targets, weights)
    np.testing.assert_allclose(total, expected @ weights, rtol=1e-12)


def test_it_needs_a_bias():
    with pytest.raises(UserError, match="bias of SelfNormalisedSoftmax is False"):
        SelfNormalisedSoftmax(bias=False)
