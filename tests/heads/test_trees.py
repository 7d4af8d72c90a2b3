"""Huffman codes and classes, by hand."""

import jax
import numpy as np
import pytest

from tests import examples
from zoo.errors import UserError
from zoo.heads import HierarchicalSoftmax, HuffmanSoftmax
from zoo.heads.huffman import huffman_paths


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


def test_words_without_occurrences_have_a_place_too():
    _, turns = huffman_paths(np.array([0, 0, 5]))
    np.testing.assert_array_equal(np.abs(turns).sum(1), [2, 2, 1])


def test_one_word_is_no_tree():
    with pytest.raises(UserError, match="needs two"):
        HuffmanSoftmax().init(jax.random.key(0), 3, examples.plain_lexicon(1))


@pytest.mark.parametrize(
    ("classes", "shape"), [(0, (3, 5)), (2, (2, 7)), (13, (13, 1)), (9, (7, 2))]
)
def test_classes_cover_the_words_evenly(classes, shape):
    params = HierarchicalSoftmax(classes).init(jax.random.key(0), 4, examples.plain_lexicon())
    assert params["bias"].shape == shape
    assert params["weights"].shape == (*shape, 4)
