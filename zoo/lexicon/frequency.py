"""Words in the order of their frequency, for heads that cut the vocabulary into pieces."""

import jax.numpy as jnp
import numpy as np


def frequency_tables(counts: np.ndarray) -> dict:
    """Ranks words by frequency; words of equal count stay in the order of the lexicon."""
    order = np.argsort(-np.asarray(counts), kind="stable").astype(np.int32)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return {"rank": jnp.asarray(rank), "word": jnp.asarray(order)}
