"""Huffman codes and classes, by hand."""

import jax
import numpy as np
import pytest

from tests import examples
from zoo.errors import UserError
from zoo.heads import HierarchicalSoftmax, HuffmanSoftmax
from zoo.losses import huffman, huffman_paths


def test_a_huffman_code_by_hand():
    # 1 + 2 = 3 (node 0), 3 + 3 = 6 (node 1: the word of count 3 comes first), 6 + 9 (node 2, root).
    nodes, turns = huffman_paths(np.array([9, 2, 3, 1]))
    np.testing.assert_array_equal(nodes, [[2, 0, 0], [2, 1, 0], [2, 1, 0], [2, 1, 0]])
    np.testing.assert_array_equal(turns, [[-1, 0, 0], [1, -1, -1], [1, 1, 0], [1, -1, 1]])


def test_a_huffman_code_is_complete_and_as_short_as_the_entropy_allows(random):
    counts = random.integers(1, 1000, size=101)
    _, turns = huffman_paths(counts)
    lengths = np.abs(turns).sum(1)
    assert sum(2.0**-lengths) == 1  # Kraft
    p = counts / counts.sum()
    entropy = -(p * np.log2(p)).sum()
    assert entropy <= (p * lengths).sum() < entropy + 1
    assert len({tuple(row) for row in turns}) == 101


def test_every_path_is_that_of_a_climb_from_its_leaf(random):
    """Of a tree made here, deep on one side, word by word."""
    vocabulary = 41
    parent, turn = np.zeros(2 * vocabulary - 1, int), np.zeros(2 * vocabulary - 1)
    free = list(range(vocabulary))
    for node in range(vocabulary, 2 * vocabulary - 1):
        first, second = free.pop(), free.pop(random.integers(len(free)))
        parent[[first, second]], turn[[first, second]] = node, (1, -1)
        free.append(node)
    nodes, turns = huffman._paths(parent, turn, vocabulary)
    lengths = []
    for word in range(vocabulary):
        path, node = [], word
        while node != 2 * vocabulary - 2:
            path.insert(0, (parent[node] - vocabulary, turn[node]))
            node = parent[node]
        lengths.append(len(path))
        path += [(0, 0)] * (nodes.shape[1] - len(path))
        np.testing.assert_array_equal(np.stack([nodes[word], turns[word]], axis=1), path)
    assert nodes.shape[1] == max(lengths)


def test_words_without_occurrences_have_a_place_too():
    _, turns = huffman_paths(np.array([0, 0, 5]))
    np.testing.assert_array_equal(np.abs(turns).sum(1), [2, 2, 1])


def test_one_word_is_no_tree():
    with pytest.raises(UserError, match="needs at least two words"):
        HuffmanSoftmax().init(jax.random.key(0), 3, examples.plain_lexicon(1))


@pytest.mark.parametrize(
    ("classes", "shape"), [(0, (3, 5)), (2, (2, 7)), (13, (13, 1)), (9, (7, 2))]
)
def test_classes_cover_the_words_evenly(classes, shape):
    params = HierarchicalSoftmax(classes).init(jax.random.key(0), 4, examples.plain_lexicon())
    assert params["bias"].shape == shape
    assert params["weights"].shape == (*shape, 4)
