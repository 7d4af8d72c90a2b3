"""What figures must share before they are ranked."""

import pytest

from tests import passports
from zoo.errors import UserError
from zoo.lab.evaluation import results

OVER_STRINGS = "all spellings of 50 bytes at most"
COUNTS = "syntactic words (a fused form counts as the words in it); the boundary counted"
SPLIT = {"counts": COUNTS, "policies__fused": "split"}
PASSPORT = passports.make(**SPLIT)


def check(first, second):
    results.check_comparable(first, second, ("a", "b"))


def test_a_lexicon_has_no_part_in_probabilities_of_strings():
    over = {"normalised_over": OVER_STRINGS}
    check(passports.make(**over), passports.make(lexicon__words="two", **over))
    # It has one where a word is read as <unk>, where it gives the alphabet, and over its words.
    spelled = OVER_STRINGS.replace("bytes", "characters")
    for fields in (
        {**over, "out_of_vocabulary": 1},
        {**over, "unknown_tokens": 1},
        {"normalised_over": f"{spelled}, those outside the alphabet being one"},
        {},
    ):
        with pytest.raises(UserError, match=r"a and b .* because lexicon\.words differs"):
            check(passports.make(**fields), passports.make(lexicon__words="two", **fields))


def test_fused_forms_matter_where_the_words_differ():
    surface = passports.make(counts="words; the boundary counted")
    check(PASSPORT, surface)
    with pytest.raises(UserError, match=r"because policies\.fused differs"):
        check(PASSPORT, passports.make(counts="words; the boundary counted", data__sha256="e"))
    with pytest.raises(UserError, match="because counts differs"):
        check(PASSPORT, passports.make(counts="words; the boundary not counted"))
