"""A head of one's own, written with as little as the contract asks for; and what it refuses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.heads import (
    Head,
    Softmax,
)

SIZE = 3


@dataclasses.dataclass(frozen=True)
class Distances(Head):
    """Scores are minus the squares of distances."""

    def _init(self, key, hidden_size, lexicon):
        return {"points": jax.random.normal(key, (len(lexicon), hidden_size))}

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        log_probs = self._log_probs(params, tables, hidden, context, prepared)
        log_prob = jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
        return log_prob, jnp.zeros_like(log_prob)

    def _log_probs(self, params, tables, hidden, context, prepared):
        points = params["points"].reshape(*[1] * (hidden.ndim - 1), -1, SIZE)
        return jax.nn.log_softmax(-((hidden[..., None, :] - points) ** 2).sum(axis=-1), axis=-1)


class WithLoss(Distances):
    """Another loss, and a part of it that is penalty."""

    def _penalties(self, params, hidden):
        return (hidden**2).sum(axis=-1)

    def _loss(self, params, tables, hidden, targets, key, context):
        return 2 - self._log_prob_and_log_z(params, tables, hidden, targets, context, None)[0]


class WithSum(Distances):
    """A sum of its own, which is what trains it."""

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        return jnp.sum(7 * token_weights)


def test_the_least_that_is_written_is_enough(random):
    lexicon = examples.plain_lexicon(5)
    params = Distances().init(jax.random.key(0), SIZE, lexicon)
    hidden = jnp.asarray(random.normal(size=(2, 3, SIZE)), jnp.float32)
    targets = jnp.asarray([[0, 4, 1], [3, 3, 2]])
    weights = jnp.asarray([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]])
    points, states = np.asarray(params["points"], np.float64), np.asarray(hidden, np.float64)
    expected = np.zeros((2, 3, 5))
    for place in np.ndindex(2, 3):
        scores = -np.array([((states[place] - point) ** 2).sum() for point in points])
        expected[place] = scores - np.log(np.exp(scores).sum())
    log_prob = np.take_along_axis(expected, np.asarray(targets)[..., None], -1)[..., 0]
    arguments = params, {}, hidden, targets
    for head, loss, penalty in (
        (Distances(), -log_prob, 0 * log_prob),
        (WithLoss(), 2 - log_prob + (states**2).sum(-1), (states**2).sum(-1)),
    ):

        @jax.jit
        def evaluate(params, hidden, head=head):
            inputs = params, {}, hidden, targets
            return (
                (head.loss(*inputs), head.log_prob(*inputs), head.weighted_loss(*inputs, weights)),
                head.weighted_loss_and_penalty(*inputs, weights),
                head.sample(*inputs[:3], jax.random.key(1)),
                head.top_k(*inputs[:3], 2),
            )

        scores, sums, samples, (best, words) = evaluate(params, hidden)
        expected_sums = [np.sum(weights * loss), np.sum(weights * penalty)]
        for score, expected_score in zip(scores, (loss, log_prob, expected_sums[0]), strict=True):
            np.testing.assert_allclose(score, expected_score, rtol=1e-5)
        np.testing.assert_allclose(sums, expected_sums, rtol=1e-5)
        assert (samples < 5).all()
        np.testing.assert_array_equal(words, np.argsort(-expected)[..., :2])
        np.testing.assert_allclose(best, -np.sort(-expected)[..., :2], rtol=1e-5)
    assert WithSum().weighted_loss_and_penalty(*arguments, weights) == (7 * 5.5, 0)
    with pytest.raises(TypeError, match="Head has no method _log_prob_and_log_z, which its use"):
        Head().log_prob(*arguments)


class Mistaken(Softmax):
    """A softmax with mistakes of its own: names that there are not."""

    def _loss(self, params, tables, hidden, targets, key, context):
        return {}["mine"]

    def _prepared(self, params, tables):
        return tables["mine"]

    def _penalties(self, params, hidden):
        return params["weights"]["mine"]

    def _log_probs(self, params, tables, hidden, context, prepared):
        return params["mine"]


def test_targets_that_are_no_words_are_known_without_declared_shapes(random):
    lexicon, hidden = examples.lexicon(), jnp.asarray(random.normal(size=(2, 3, SIZE)))
    head, targets = Distances(), jnp.array([[1, 2, len(lexicon)], [3, -1, 4]])
    params = head.init(jax.random.key(0), SIZE, lexicon)
    with pytest.raises(ValueError, match=r"Distances.log_prob: targets has 13 at \[0, 2\]"):
        head.log_prob(params, {}, hidden, targets)
    log_prob = jax.jit(head.log_prob)(params, {}, hidden, targets)
    np.testing.assert_array_equal(np.isnan(log_prob), [[False, False, True], [False, True, False]])


def test_an_error_of_the_heads_own_is_let_through():
    lexicon = examples.plain_lexicon(5)
    params = Mistaken().init(jax.random.key(0), SIZE, lexicon)
    hidden, targets = jnp.ones((2, SIZE)), jnp.zeros(2, int)
    for call in (
        lambda: Mistaken().loss(params, {}, hidden, targets),
        lambda: Mistaken().prepared(params, {}),
        lambda: Mistaken().log_probs(params, {}, hidden),
    ):
        with pytest.raises(KeyError, match=r"^'mine'$"):
            call()
    with pytest.raises(TypeError, match=r"Array|index"):  # of the array itself
        Mistaken().weighted_loss_and_penalty(params, {}, hidden, targets, 1.0)


def test_a_method_that_checks_arguments_is_not_overridden():
    message = r"Unchecked overrides loss, which checks .*: write _loss, with the arguments"
    with pytest.raises(TypeError, match=message):

        class Unchecked(Distances):
            def loss(self, params, tables, hidden, targets, *, key=None, context=None):
                return jnp.zeros(())
