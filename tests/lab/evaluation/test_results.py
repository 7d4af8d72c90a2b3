"""What figures must share before they are ranked."""

import copy

import pytest

from zoo.errors import UserError
from zoo.lab.evaluation import results

OVER_STRINGS = "all spellings of 50 bytes at most"
PASSPORT = {
    "kind": "perplexity",
    "split": "test",
    "policies": {"state": "sentences", "fused": "split"},
    "counts": "syntactic words (a fused form counts as the words in it); the boundary counted",
    "data": {"sha256": "d"},
    "lexicon": {"words": "one"},
    "normalised_over": "the 9 words of the lexicon",
    "constraint": None,
    "tokens": 7,
    "out_of_vocabulary": 0,
    "unknown_tokens": 0,
}


def passport_with(**fields):
    """A passport with other fields; "lexicon" and "data" by their digests."""
    passport = copy.deepcopy(PASSPORT)
    for name, key in (("lexicon", "words"), ("data", "sha256")):
        if name in fields:
            passport[name] = {key: fields.pop(name)}
    if "fused" in fields:
        passport["policies"]["fused"] = fields.pop("fused")
    return {**passport, **fields}


def check(first, second):
    results.check_comparable(first, second, ("a", "b"))


def test_a_lexicon_has_no_part_in_probabilities_of_strings():
    over = {"normalised_over": OVER_STRINGS}
    check(passport_with(**over), passport_with(lexicon="two", **over))
    # It has one where a word is read as <unk>, where it gives the alphabet, and over its words.
    spelled = OVER_STRINGS.replace("bytes", "characters")
    for fields in (
        {**over, "out_of_vocabulary": 1},
        {**over, "unknown_tokens": 1},
        {"normalised_over": f"{spelled}, those outside the alphabet being one"},
        {},
    ):
        with pytest.raises(UserError, match=r"a and b .* because lexicon\.words differs"):
            check(passport_with(**fields), passport_with(lexicon="two", **fields))


def test_fused_forms_matter_where_the_words_differ():
    surface = passport_with(fused=None, counts="words; the boundary counted")
    check(PASSPORT, surface)
    with pytest.raises(UserError, match=r"because policies\.fused differs"):
        check(PASSPORT, {**surface, "data": {"sha256": "e"}})
    with pytest.raises(UserError, match="because counts differs"):
        check(PASSPORT, passport_with(fused=None, counts="words; the boundary not counted"))
