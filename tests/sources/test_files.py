"""Numbers in text files."""

import pytest

from zoo.errors import UserError
from zoo.sources import files


@pytest.mark.parametrize(("text", "number"), [("-1.5e2", -150.0), ("+.5", 0.5), (3, 3.0)])
def test_finite_numbers_are_parsed(text, number):
    assert files.parse_number(text, "a.txt, line 1", "the score") == number


@pytest.mark.parametrize("text", ["", "x", "1_000", "٣", "nan", "inf", "1e999", "e", " 1", True])
def test_other_texts_are_refused_with_their_place(text):
    message = rf"^a\.txt, line 1: the score is '{text}': give a finite number\.$"
    with pytest.raises(UserError, match=message):
        files.parse_number(text, "a.txt, line 1", "the score")
