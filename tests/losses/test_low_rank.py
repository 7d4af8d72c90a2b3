"""Low-rank changes of the table of a softmax against the table that they make."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import references
from tests.losses.test_softmax import problem
from tests.marks import slow
from zoo import losses
from zoo.base.arrays import sharded_functions
from zoo.losses import softmax
from zoo.losses.weighted_softmax import weighted_softmax_loss


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("form", ["tokens", "words", *slow("plain")])
def test_low_rank_changes_of_the_table(random, form, monkeypatch):
    """Values and gradients of (W + B A) h + c, in every form and function of a softmax."""
    if form == "words":
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 7 * 5)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    hidden, weights, bias, targets = problem(random, 13)
    size = hidden.shape[1]
    down, up = random.normal(size=(2, size)), random.normal(size=(13, 2))
    u = random.normal(size=7)

    def functions(hidden, weights):
        if form == "tokens":
            return weighted_softmax_loss(hidden, weights, bias, targets, u, 3)
        loss, log_z = softmax.softmax_loss(hidden, weights, bias, targets)
        log_probs = losses.softmax_word_log_probs(hidden, weights, bias, targets[:, None])
        best, _ = losses.softmax_top_k(hidden, weights, bias, 2)
        entropy = losses.softmax_statistics(hidden, weights, bias, targets).entropy
        total = weighted_softmax_loss(hidden, weights, bias, targets, u)
        return total + u @ (loss + 2 * log_z + log_probs[:, 0] - entropy), jax.lax.stop_gradient(
            best
        )

    def joined(hidden, weights, down, up):
        return functions(*losses.add_low_rank(hidden, weights, down, up))

    def formed(hidden, weights, down, up):
        return functions(hidden, weights + up @ down)

    has_aux = form != "tokens"
    actual, expected = jax.jit(
        lambda *arrays: [
            jax.value_and_grad(f, range(4), has_aux=has_aux)(*arrays) for f in (joined, formed)
        ]
    )(hidden, weights, down, up)
    for leaf, expected_leaf in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-9, atol=1e-12)
    loss, _ = references.softmax_loss(hidden, weights + up @ down, bias, targets)
    if form == "tokens":
        np.testing.assert_allclose(actual[0], u @ loss, rtol=1e-10)


def test_a_table_with_a_low_rank_change_is_not_copied(monkeypatch):
    """Neither in its type nor in the change's; a frozen one has no gradient either."""
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: True)
    tokens, size, words, rank = 512, 64, 80_000, 4
    shapes = [(tokens, size), (words, size), (rank, size), (words, rank)]
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]

    def loss(hidden, weights, down, up):
        table = losses.add_low_rank(hidden, jax.lax.stop_gradient(weights), down, up)
        targets = jnp.zeros(tokens, int)
        return weighted_softmax_loss(*table, jnp.zeros(words), targets, jnp.ones(tokens), 32)

    compiled = jax.jit(jax.grad(loss, (0, 2, 3))).lower(*arrays).compile()
    table, logits = 4 * words * size, 4 * 32 * words
    assert compiled.memory_analysis().temp_size_in_bytes < logits + table / 2
