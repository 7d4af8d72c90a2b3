"""The attention of a decoder as the words stand in the sentences, in each order, by hand."""

import numpy as np
import pytest

from zoo.alignment import in_sentence_order, most_attended

# Source a b c, target X Y: rows are X and Y, columns a, b and c.
EXPECTED = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
# As a decoder gives them: two columns of padding on the left, then the boundary's row and padding.
DECODED = {
    "forward": [[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]],
    "source_reversed": [[0.2, 0.7, 0.1], [0.3, 0.2, 0.5]],
    "target_reversed": [[0.5, 0.2, 0.3], [0.1, 0.7, 0.2]],
}


@pytest.mark.parametrize("order", DECODED)
@pytest.mark.parametrize("padding", [0, 2])
def test_rows_and_columns_are_those_of_the_sentences(order, padding):
    weights = np.full((2 + padding, padding + 3), 0.9)
    weights[:2, padding:] = DECODED[order]
    found = in_sentence_order(weights, 3, 2, order)
    np.testing.assert_array_equal(found, EXPECTED)
    assert most_attended(found) == [(1, 0), (0, 1)]


def test_of_equal_weights_the_earlier_word_is_taken():
    assert most_attended(np.array([[0.4, 0.4, 0.2]])) == [(0, 0)]
    assert most_attended(np.zeros((0, 3))) == []


def test_too_few_rows_or_columns_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\) for 3 target and 3 source words"):
        in_sentence_order(EXPECTED, 3, 3, "forward")
    with pytest.raises(ValueError, match=r"for 2 target and 4 source words"):
        in_sentence_order(EXPECTED, 4, 2, "forward")
