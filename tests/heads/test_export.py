"""Programs of heads that are exported for any number of rows give what direct calls give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from tests import examples
from tests.heads.test_contract import HEADS, SIZE
from zoo.arrays import blocks
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.models import LanguageModel

# The others in make test-all.
USUAL = {"softmax", "log-linear"}
CASES = [name if name in USUAL else pytest.param(name, marks=pytest.mark.slow) for name in HEADS]


def operations(head):
    """All that a head computes, of (params, tables, hidden, targets, weights, key)."""

    def function(params, tables, hidden, targets, weights, key):
        given = params, tables, hidden
        value, gradients = jax.value_and_grad(head.weighted_loss, argnums=(0, 2, 4))(
            *given, targets, weights, key=key
        )
        return {
            "loss": head.loss(*given, targets, key=key),
            "weighted_loss": value,
            "gradients": gradients,
            "log_prob_and_log_z": head.log_prob_and_log_z(*given, targets),
            "log_probs": head.log_probs(*given),
            "top_k": head.top_k(*given, 3),
        }

    return function


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_any_number_of_rows(name, float64, monkeypatch, random):
    monkeypatch.setattr(blocks, "OF_ANY_ROWS", 4)  # so that there are several blocks
    head, lexicon = HEADS[name].head, examples.lexicon()
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
    params = model.head_params(examples.random_params(model, random, lexicon, scale=0.8))
    tables = head.tables(lexicon)
    function, key = jax.jit(operations(head)), jax.random.key(1)
    sample = jax.jit(head.sample)
    (rows,) = export.symbolic_shape("rows")

    def like(tree):
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)

    def any_rows(dtype, *shape):
        return jax.ShapeDtypeStruct((rows, 3, *shape), dtype)

    states = any_rows(jnp.float64, SIZE)
    of_tokens = any_rows(jnp.int32), any_rows(jnp.float64)
    common = like((params, tables))
    exported = export.export(function)(*common, states, *of_tokens, like(key))
    drawing = export.export(sample)(*common, states, like(key))
    for count in (1, 5):
        hidden = jnp.asarray(random.normal(size=(count, 3, SIZE)))
        targets = jnp.asarray(random.integers(0, 13, (count, 3)), jnp.int32)
        arguments = hidden, targets, jnp.asarray(random.uniform(size=(count, 3)))
        found = exported.call(params, tables, *arguments, key)
        wanted = function(params, tables, *arguments, key)
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
        # Blocks draw other words than no blocks: of those that are sure, the same.
        words = drawing.call(params, tables, 1e3 * hidden, key)
        assert words.shape == (count, 3) and words.dtype == jnp.int32
        log_probs, best = head.top_k(params, tables, 1e3 * hidden, 1)
        sure = np.asarray(log_probs[..., 0] > -1e-9)
        np.testing.assert_array_equal(words[sure], best[..., 0][sure])
