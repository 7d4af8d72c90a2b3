"""Where jax knows 64 bits: parameters in 32 beside weights in 64, as numpy makes them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.heads import head_references
from tests.heads.test_low_precision import CLOSED, SPELLED
from zoo.heads import NCE, CNNSoftmax, LetterNoise

SIZE, BATCH, TIME = 7, 3, 5
HEADS = CLOSED | {
    "CharLSTM over all spellings": dataclasses.replace(SPELLED, renormalised=False),
    "letters against spellings": CNNSoftmax(
        head_references.NETWORK, sampled=NCE(samples=2, noise=LetterNoise())
    ),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.slow
def test_a_head_trains_and_scores(name, random):
    head, lexicon = HEADS[name], examples.lexicon()
    params = examples.random_params(head, random, SIZE, lexicon, scale=0.5)
    if head.tied:
        params["weights"] = jnp.asarray(random.normal(size=(13, SIZE)))
    params = jax.tree.map(lambda x: x.astype(jnp.float32), params)
    hidden = jnp.asarray(random.normal(size=(BATCH, TIME, SIZE)), jnp.float32)
    targets = random.integers(0, 13, (BATCH, TIME))
    weights = random.uniform(size=(BATCH, TIME))
    assert (targets.dtype, weights.dtype) == (np.int64, np.float64)
    context = jnp.full((BATCH, TIME), 2) if head.background is not None else None

    @jax.jit
    def evaluate(params, tables, hidden, targets, weights):
        given = {"key": jax.random.key(1), "context": context}

        def loss(params, hidden, weights):
            return head.weighted_loss(params, tables, hidden, targets, weights, **given)

        results = jax.value_and_grad(loss, argnums=(0, 1, 2))(params, hidden, weights)
        losses = head.loss(params, tables, hidden, targets, **given)
        return results, losses, head.log_probs(params, tables, hidden, context=context)

    tables = head.tables(lexicon)
    (value, gradients), losses, log_probs = evaluate(params, tables, hidden, targets, weights)
    np.testing.assert_allclose(value, np.sum(weights * losses), rtol=1e-5)
    np.testing.assert_allclose(gradients[2], losses, rtol=1e-4)
    like = params, hidden, weights
    for gradient, x in zip(jax.tree.leaves(gradients), jax.tree.leaves(like), strict=True):
        assert gradient.dtype == x.dtype and np.isfinite(gradient).all()
    if name != "CharLSTM over all spellings":
        np.testing.assert_allclose(np.exp(log_probs).sum(axis=-1), 1, atol=1e-5)
