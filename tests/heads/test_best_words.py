"""The best words of heads whose words are in another order than their parameters, in blocks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo import heads
from zoo.losses import softmax

SIZE, WORDS = 5, 13


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize(
    "head",
    [heads.AdaptiveSoftmax(cutoffs=(3, 8), division=2), heads.HierarchicalSoftmax(classes=5)],
)
def test_they_are_those_of_all_log_probabilities(head, blocks, monkeypatch, random):
    if blocks:  # of two classes or rows, which do not divide them
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 64)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 2)
        monkeypatch.setattr(softmax, "MOST_ROWS_AT_A_TIME", 6)
        monkeypatch.setattr(softmax, "NARROW", 1)
    words = examples.plain_lexicon(WORDS)
    lexicon = dataclasses.replace(words, counts=random.permutation(WORDS))
    params, tables = examples.random_params(head, random, SIZE, lexicon), head.tables(lexicon)
    hidden = jnp.asarray(random.normal(size=(3, 5, SIZE)))

    @jax.jit
    def evaluate(params, hidden):
        some = [head.top_k(params, tables, hidden, k) for k in (1, 7, WORDS)]
        return some, head.log_probs(params, tables, hidden)

    found, log_probs = jax.device_get(evaluate(params, hidden))
    order = np.argsort(-log_probs, axis=-1)
    for values, ids in found:
        wanted = order[..., : ids.shape[-1]]
        np.testing.assert_array_equal(ids, wanted)
        assert ids.dtype == np.int32
        expected = np.take_along_axis(log_probs, wanted, axis=-1)
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
