"""The hierarchical softmax over a binary tree, in which a word is a path from the root.

Morin and Bengio (2005); Mikolov et al. (2013), appendix. The tree is the Huffman code of the
training counts, so that frequent words are near the root. Each of the V - 1 inner nodes n decides
by a sigmoid; with turns s = +1 (first child) or -1 (second) along the path of x,

    p(x | h) = prod_{(n, s) on the path of x} sigmoid(s (w_n . h + c_n)),

which is normalised by construction. A token costs one score for each node of the path, about
log2 V.
"""

import heapq

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import products, row_lookup, sharded_functions
from zoo.base.arrays.types import Array
from zoo.losses import softmax, value_checks


def _check_paths(axis, operands, nodes, turns):
    """Raises ValueError unless shapes agree, nodes are rows of the weights (where turns are not 0),
    and turns are 1, -1 or 0. `axis` of the paths: "..." for tokens, "V" for all words."""
    hidden, weights, bias = operands
    value_checks.check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "N D"),
        bias=(bias, "N"),
        nodes=(nodes, f"{axis} L"),
        turns=(turns, f"{axis} L"),
        integers=("nodes",),
    )
    value_checks.check_ids(weights.shape[0], turns, nodes=nodes)
    values = value_checks.concrete_values(turns)
    if values is not None:
        is_wrong = ~np.isin(values, (-1, 0, 1))
        value_checks.refuse("turns", values, is_wrong, "1, -1, or 0 beyond the end")


@sharded_functions.over_tokens("hidden")
def path_loss(hidden: Array, weights: Array, bias: Array, nodes: Array, turns: Array) -> Array:
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
    _check_paths("...", (hidden, weights, bias), nodes, turns)
    scores = products.einsum("...ld,...d->...l", row_lookup.take(weights, nodes), hidden)
    scores += row_lookup.take(bias, nodes)
    return jnp.where(turns == 0, 0, jax.nn.softplus(-turns * scores)).sum(-1)


@sharded_functions.over_tokens("hidden")
def path_log_probs(hidden: Array, weights: Array, bias: Array, nodes: Array, turns: Array) -> Array:
    """Computes log p of every word of a binary tree.

    Args:
      hidden, weights, bias: see `path_loss`.
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
    _check_paths("V", (hidden, weights, bias), nodes, turns)
    scores = softmax.logits(hidden, weights, bias)

    def step(total, level):
        nodes, turns = level
        turns = jnp.broadcast_to(turns, (*scores.shape[:-1], turns.size))
        level_log_probs = jax.nn.log_sigmoid(turns * scores[..., nodes])
        return total + jnp.where(turns == 0, 0, level_log_probs), None

    total = sharded_functions.zeros((*scores.shape[:-1], nodes.shape[0]), scores.dtype, scores)
    return jax.lax.scan(step, total, (nodes.T, turns.T))[0]


# ------- the Huffman tree of words by their counts, as the path of each word from the root


def huffman_paths(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes the paths of all words in the Huffman tree of their counts.

    A word without occurrences counts as half an occurrence. Of nodes with equal counts, the node
    made first is taken first, so that the tree depends on the counts alone.

    Args:
      counts: occurrences of each word, [V], at least 0; V at least 1.

    Returns:
      (inner nodes int32 [V, L], turns float32 [V, L]), from the root on. Turns are +1 and -1, and 0
      beyond the end of a path.

    Raises:
      ValueError: counts are not [V], empty or below 0.

    Example:
      >>> nodes, turns = losses.huffman_paths(np.array([9, 3, 1]))
      >>> print(nodes.tolist(), turns.tolist())
      [[1, 0], [1, 0], [1, 0]] [[-1.0, 0.0], [1.0, -1.0], [1.0, 1.0]]

    Source: Huffman (1952); Mikolov et al. (2013), appendix.
    """
    value_checks.check_shapes(counts=(counts, "V"))
    value_checks.check_least(0, "occurrences, at least 0", counts=counts)
    vocabulary = len(counts)
    if not vocabulary:
        raise ValueError("counts are empty: give the count of at least one word")
    heap = [(max(float(count), 0.5), word) for word, count in enumerate(counts)]
    heapq.heapify(heap)
    # Tree nodes: words are 0 .. V - 1, inner nodes V .. 2 V - 2 in the order of their making.
    parent, turn = np.zeros(2 * vocabulary - 1, np.int64), np.zeros(2 * vocabulary - 1, np.float32)
    for node in range(vocabulary, 2 * vocabulary - 1):
        (first_mass, first), (second_mass, second) = heapq.heappop(heap), heapq.heappop(heap)
        parent[first] = parent[second] = node
        turn[first], turn[second] = 1, -1
        heapq.heappush(heap, (first_mass + second_mass, node))
    return _paths_from_parents(parent, turn, vocabulary)


def _paths_from_parents(parent, turn, vocabulary):
    """Converts a tree, given by each node's parent and turn, to paths (nodes [V, L], turns [V, L])
    from the root; climbs from all words at once, by levels."""
    root = len(parent) - 1
    lengths, climbers = np.zeros(vocabulary, np.int64), np.arange(vocabulary)
    words = np.arange(vocabulary if root else 0)
    while len(words):
        lengths[words] += 1
        climbers = parent[climbers]
        words, climbers = words[climbers != root], climbers[climbers != root]
    longest = lengths.max()
    nodes = np.zeros((vocabulary, longest), np.int32)
    turns = np.zeros((vocabulary, longest), np.float32)
    # A word that climbs from a leaf fills its row from the end of its path to the start.
    climbers = np.arange(vocabulary)
    for level in range(longest):
        words = np.flatnonzero(lengths > level)
        columns = lengths[words] - 1 - level
        turns[words, columns] = turn[climbers[words]]
        climbers[words] = parent[climbers[words]]
        nodes[words, columns] = climbers[words] - vocabulary
    return nodes, turns
