"""The hierarchical softmax over a binary tree, in which a word is a path from the root.

Morin and Bengio (2005); Mikolov et al. (2013), appendix. The tree is the Huffman code of the
training counts, so that frequent words are near the root. Each of the V - 1 inner nodes n decides
by a sigmoid; with turns s = +1 (first child) or -1 (second) along the path of x,

    p(x | h) = prod_{(n, s) on the path of x} sigmoid(s (w_n . h + c_n)),

which is normalised by construction. A token costs one score for each node of the path, about
log2 V.
"""

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays import products, row_lookup, sharded_functions
from zoo.arrays.sharded_functions import over_tokens
from zoo.losses import softmax, value_checks
from zoo.losses.shape_checks import check_shapes


def _check_paths(weights, nodes, turns):
    value_checks.check_ids(weights.shape[0], turns, nodes=nodes)
    if (known := value_checks.known(turns)) is not None:
        value_checks.refuse(
            "turns", known, ~np.isin(known, (-1, 0, 1)), "1, -1, or 0 beyond the end"
        )


@over_tokens("hidden")
def path_loss(hidden, weights, bias, nodes, turns):
    """Computes -log prod_l sigmoid(s_l (w_{n_l} . h + c_{n_l})) of words in a binary tree.

    Args:
      hidden: h, [..., D].
      weights: w of the inner nodes, [V - 1, D].
      bias: c of the inner nodes, [V - 1].
      nodes: n, inner nodes on the way to the word: int [..., L].
      turns: s, +1 or -1, 0 beyond the end of a path: [..., L].

    Returns:
      [...], nats; exact, and normalised for every binary tree.

    Raises:
      ValueError: shapes do not agree. TypeError: nodes are not whole numbers.

    Example:
      >>> nodes, turns = losses.huffman_paths(np.array([9, 3, 1]))
      >>> table, words = (jnp.zeros((2, 4)), jnp.zeros(2)), np.array([0, 1])
      >>> loss = losses.path_loss(jnp.ones((2, 4)), *table, nodes[words], turns[words])
      >>> print(jnp.exp(-loss))
      [0.5  0.25]

    Source: Morin and Bengio (2005); Mikolov et al. (2013), appendix.
    """
    check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "N D"),
        bias=(bias, "N"),
        nodes=(nodes, "... L"),
        turns=(turns, "... L"),
        integers=("nodes",),
    )
    _check_paths(weights, nodes, turns)
    scores = products.einsum("...ld,...d->...l", row_lookup.take(weights, nodes), hidden)
    scores += row_lookup.take(bias, nodes)
    return jnp.where(turns == 0, 0, jax.nn.softplus(-turns * scores)).sum(-1)


@over_tokens("hidden")
def path_log_probs(hidden, weights, bias, nodes, turns):
    """Computes log p of every word of a binary tree.

    Args:
      hidden: h, [..., D].
      weights: w of the inner nodes, [V - 1, D].
      bias: c of the inner nodes, [V - 1].
      nodes: n, inner nodes on the way to each word: int [V, L].
      turns: s, +1 or -1, 0 beyond the end of a path: [V, L].

    Returns:
      [..., V], nats.

    Raises:
      ValueError: shapes do not agree. TypeError: nodes are not whole numbers.

    Example:
      >>> paths = map(jnp.asarray, losses.huffman_paths(np.array([9, 3, 1])))
      >>> table = jnp.zeros((2, 4)), jnp.zeros(2)
      >>> print(jnp.exp(losses.path_log_probs(jnp.ones(4), *table, *paths)))
      [0.5  0.25 0.25]

    Source: Morin and Bengio (2005); Mikolov et al. (2013), appendix.
    """
    check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "N D"),
        bias=(bias, "N"),
        nodes=(nodes, "V L"),
        turns=(turns, "V L"),
        integers=("nodes",),
    )
    _check_paths(weights, nodes, turns)
    scores = softmax.logits(hidden, weights, bias)

    def step(total, level):
        nodes, turns = level
        turns = jnp.broadcast_to(turns, (*scores.shape[:-1], turns.size))
        of_level = jax.nn.log_sigmoid(turns * scores[..., nodes])
        return total + jnp.where(turns == 0, 0, of_level), None

    total = sharded_functions.zeros((*scores.shape[:-1], nodes.shape[0]), scores.dtype, scores)
    return jax.lax.scan(step, total, (nodes.T, turns.T))[0]
