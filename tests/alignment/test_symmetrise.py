"""Two alignments put together, by hand."""

import numpy as np
import pytest

from zoo.alignment import METHODS, symmetrise

# Links of a 4 x 4 pair: the intersection is the corner; the union has a neighbour of it that covers
# a new word (1, 1), one that covers none by then (0, 1), and two far away.
FORWARD = [(0, 0), (1, 1), (0, 1), (3, 3)]
BACKWARD = [(0, 0), (2, 1), (3, 3), (1, 3)]
EXPECTED = {
    "intersection": [(0, 0), (3, 3)],
    "union": [(0, 0), (0, 1), (1, 1), (1, 3), (2, 1), (3, 3)],
    # From (0, 0): (0, 1) covers target 1, then (1, 1) source 1. From (0, 1) and (1, 1): (2, 1)
    # covers source 2. (1, 3) is no neighbour of a link when it still would cover a word.
    "grow-diag": [(0, 0), (0, 1), (1, 1), (2, 1), (3, 3)],
    "grow-diag-final": [(0, 0), (0, 1), (1, 1), (2, 1), (3, 3)],
    "grow-diag-final-and": [(0, 0), (0, 1), (1, 1), (2, 1), (3, 3)],
}


@pytest.mark.parametrize("method", METHODS)
def test_by_hand(method):
    assert symmetrise(FORWARD, BACKWARD, method) == EXPECTED[method]


def test_final_takes_far_links_and_final_and_those_of_two_free_words():
    forward, backward = [(0, 0), (0, 5)], [(0, 0), (4, 4), (6, 4)]
    assert symmetrise(forward, backward, "grow-diag") == [(0, 0)]
    assert symmetrise(forward, backward, "grow-diag-final") == [(0, 0), (0, 5), (4, 4), (6, 4)]
    assert symmetrise(forward, backward, "grow-diag-final-and") == [(0, 0), (4, 4)]


@pytest.mark.parametrize("seed", range(3))
def test_each_method_has_the_links_of_those_before_it(seed):
    generator = np.random.default_rng(seed)
    one, other = ([*map(tuple, generator.integers(0, 9, (12, 2)).tolist())] for _ in range(2))
    inner, grown, final, strict, union = (
        {*symmetrise(one, other, method)}
        for method in (
            *("intersection", "grow-diag", "grow-diag-final", "grow-diag-final-and", "union"),
        )
    )
    assert inner <= grown <= strict <= union and grown <= final <= union
    # With final, every word that has a link in the union has one.
    for side in (0, 1):
        assert {link[side] for link in final} == {link[side] for link in union}


def test_another_method():
    with pytest.raises(ValueError, match="give one of intersection, grow-diag"):
        symmetrise([], [], "grow")
