"""Prefixes of spellings, each once."""

import numpy as np

from zoo.lexicon import spelling
from zoo.lexicon.spelling import BLOCK, prefix_tree

BEGIN = 1


def prefix_at(tree, place):
    """The letters of a prefix, found from its end."""
    letters = []
    while place != BLOCK:
        row, column = divmod(int(place) - BLOCK, BLOCK)
        letters.append(int(tree.letter[row, column]))
        place = tree.parent[row, column]
    return letters[::-1]


def test_words_by_hand():
    # ab, abc, b, and a twice; 3 ends a word.
    words = [[7, 8, 3], [7, 8, 9, 3], [8, 3], [7, 3], [7, 3]]
    tree = prefix_tree(**spelling.table(words), begin=BEGIN)
    assert [prefix_at(tree, place) for place in tree.node] == [word[:-1] for word in words]
    assert tree.final.tolist() == [3] * 5
    assert tree.node[3] == tree.node[4]
    # The empty one, a and b, ab, abc: a block each.
    assert tree.parent.shape == tree.letter.shape == (4, BLOCK)
    assert tree.letter[0, 0] == BEGIN and not tree.parent[0].any()
    assert (tree.parent > 0).sum() == 4
    # A prefix is in a later block than the one that it goes on from.
    assert (tree.parent // BLOCK <= np.arange(4)[:, None]).all()


def test_random_spellings(random):
    words = [random.integers(3, 6, size=random.integers(1, 9)).tolist() for _ in range(300)]
    tree = prefix_tree(**spelling.table(words), begin=BEGIN)
    found = [[*prefix_at(tree, n), f] for n, f in zip(tree.node, tree.final.tolist(), strict=True)]
    assert found == words
    prefixes = {tuple(word[:size]) for word in words for size in range(1, len(word))}
    assert (tree.parent > 0).sum() == len(prefixes)
