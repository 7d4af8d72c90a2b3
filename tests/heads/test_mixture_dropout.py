"""Dropout of the contexts of a mixture of softmaxes, by a loop over the same masks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests import examples, references
from tests.marks import slow
from zoo.base.arrays.random_keys import Keys, fold_in_rows
from zoo.errors import UserError
from zoo.heads import MixtureOfSoftmaxes, mixture
from zoo.layers import dropout

HEAD = MixtureOfSoftmaxes(components=2, size=5, latent_dropout=0.4)


def losses(params, hidden, targets, masks):
    """-log p of tokens [N] with the masks [N, M, size] of their contexts."""
    log_priors, contexts = references.mixture_contexts(params, hidden)
    token_losses = []
    for log_prior, g, mask, target in zip(log_priors, contexts, masks, targets, strict=True):
        log_p = references.softmax_log_probs(g * mask, params["weights"], params["bias"])
        token_losses.append(-references.log_sum_exp(log_prior + log_p[:, target]))
    return np.array(token_losses)


@pytest.mark.usefixtures("float64")
def test_all_positions_of_a_row_share_a_mask(random):
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(HEAD, random, 7, lexicon)
    hidden, targets = random.normal(size=(3, 4, 7)), random.integers(13, size=(3, 4))
    keys, weights = Keys.from_key(jax.random.key(0), 3), random.uniform(size=(3, 4))
    row_keys = fold_in_rows(keys.rows, mixture._LATENT)
    masks = np.asarray(dropout.masks(row_keys, (2, 5), 0.4, jnp.float64))
    assert 0 < (masks == 0).sum() < masks.size
    expected = losses(
        params, hidden.reshape(12, 7), targets.ravel(), masks.repeat(4, axis=0)
    ).reshape(3, 4)
    arguments = params, HEAD.tables(lexicon), jnp.asarray(hidden), jnp.asarray(targets)
    np.testing.assert_allclose(jax.jit(HEAD.loss)(*arguments, key=keys), expected, rtol=1e-12)

    @jax.jit
    def total(inputs):
        params, hidden = inputs
        targets_and_weights = jnp.asarray(targets), jnp.asarray(weights)
        return HEAD.weighted_loss(
            params, HEAD.tables(lexicon), hidden, *targets_and_weights, key=keys
        )

    inputs = params, jnp.asarray(hidden)
    np.testing.assert_allclose(total(inputs), (weights * expected).sum(), rtol=1e-12)
    gradients, expected_gradients = (
        jax.jit(jax.grad(total))(inputs),
        examples.finite_differences_of_tree(total, inputs),
    )
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, atol=1e-7), gradients, expected_gradients
    )


def test_without_a_key_and_for_scores_there_is_none(random):
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(HEAD, random, 7, lexicon)
    hidden, targets = random.normal(size=(6, 7)), random.integers(13, size=6)
    arguments = params, HEAD.tables(lexicon), jnp.asarray(hidden), jnp.asarray(targets)
    expected = losses(params, hidden, targets, np.ones((6, 2, 5)))
    np.testing.assert_allclose(jax.jit(HEAD.loss)(*arguments), expected, rtol=1e-5)
    np.testing.assert_allclose(-jax.jit(HEAD.log_prob)(*arguments), expected, rtol=1e-5)
    for rate in (1.0, None):
        with pytest.raises(UserError, match=f"latent_dropout of MixtureOfSoftmaxes is {rate}"):
            MixtureOfSoftmaxes(latent_dropout=rate)
    with pytest.raises(TypeError, match="key is 3: give a key"):
        HEAD.loss(*arguments, key=3)


@pytest.mark.parametrize("has_row_keys", [True, *slow(False)], ids=["keys of rows", "one key"])
def test_devices_that_share_the_rows_draw_the_masks_of_one(has_row_keys, random):
    lexicon = examples.plain_lexicon(13)
    params = examples.random_params(HEAD, random, 7, lexicon)
    hidden, targets = random.normal(size=(4, 3, 7)), random.integers(13, size=(4, 3))
    key = Keys.from_key(jax.random.key(0), 4) if has_row_keys else jax.random.key(0)

    @jax.jit
    @jax.value_and_grad
    def loss(params, hidden, targets, weights):
        return HEAD.weighted_loss(params, HEAD.tables(lexicon), hidden, targets, weights, key=key)

    arrays = tuple(map(jnp.asarray, (hidden, targets, random.uniform(size=(4, 3)))))
    expected = loss(params, *arrays)
    mesh = jax.make_mesh((4,), ("rows",))  # explicit
    with jax.set_mesh(mesh):
        rows, replicated = NamedSharding(mesh, P("rows")), NamedSharding(mesh, P())
        sharded = loss(jax.device_put(params, replicated), *jax.device_put(arrays, rows))
    for leaf, expected_leaf in zip(*map(jax.tree.leaves, (sharded, expected)), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-5, atol=1e-6)
