"""The Huffman tree of words by their counts, as the path of each word from the root."""

import heapq

import numpy as np

from zoo.losses import value_checks
from zoo.losses.shape_checks import check_shapes


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
    check_shapes(counts=(counts, "V"))
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
    return _paths(parent, turn, vocabulary)


def _paths(parent, turn, vocabulary):
    """Returns a tree's (nodes [V, L], turns [V, L]); climbs from all words at once, by levels."""
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
