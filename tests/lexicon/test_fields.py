"""A lexicon whose fields do not fit each other is refused where it is made, by the field's name."""

import dataclasses
import re

import numpy as np
import pytest

from tests import examples
from zoo.errors import UserError
from zoo.lexicon import Lexicon, with_features

FULL = dataclasses.replace(
    examples.lexicon(), unknown="word 1", boundary="word 0", left_out={"another": 2}
)


def with_value(array, place, value):
    array = array.copy()
    array[place] = value
    return array


# What is given, and what is said of it.
WRONG_TYPES = {
    "words: list": ({"words": list(FULL.words)}, "words is a list: give a tuple of strings"),
    "words: no string": (
        {"words": (*FULL.words[:-1], 7)},
        "words has 7 at 12, which is not a string",
    ),
    "counts: list": ({"counts": [1] * 13}, "counts is a list: give a numpy array of integers"),
    "counts: floats": ({"counts": np.ones(13)}, "counts has numbers of float64: give integers"),
    "feature_ids": ({"feature_ids": FULL.feature_ids * 1.0}, "feature_ids has numbers of float64"),
    "feature_values": (
        {"feature_values": FULL.feature_ids},
        "feature_values has numbers of int32: give floats",
    ),
    "unknown": ({"unknown": 1}, "unknown is a int: give a word or None"),
    "alphabet": ({"alphabet": "abc"}, "alphabet is a str"),
    "background_tables": ({"background_tables": {"a": [1]}}, "background_tables has a list in it"),
    "left_out": ({"left_out": {"a": 1.5}}, "left_out has a float in it: give whole numbers"),
    "fused": ({"fused": {"au": "à le"}}, "fused has a str in it"),
}
IDS = FULL.feature_ids
WRONG_VALUES = {
    "no words": ({"words": ()}, "words is empty"),
    "twice": ({"words": (*FULL.words[:-1], "word 3")}, "words has 'word 3' twice, at 3 and 12"),
    "counts: few": (
        {"counts": np.arange(4)},
        "counts has the shape (4,) and should have (13,): one for each of 13 words",
    ),
    "counts: negative": (
        {"counts": with_value(FULL.counts, 5, -3)},
        "counts has -3 for 'word 5': give 0 or more",
    ),
    "counts: many": ({"counts": np.full(13, 2**62)}, "counts add up to 2^63 or more: give counts"),
    "offsets: falling, unsigned": (
        {"feature_offsets": with_value(FULL.feature_offsets, 4, 2).astype(np.uint32)},
        "feature_offsets has 2 at 4: offsets start at 0",
    ),
    "offsets: none": ({"feature_offsets": None}, "feature_offsets is None where there is feature"),
    "offsets: first": (
        {"feature_offsets": FULL.feature_offsets + 1},
        "feature_offsets has 1 at 0: offsets start at 0 and never fall",
    ),
    "offsets: falling": (
        {"feature_offsets": with_value(FULL.feature_offsets, 4, 2)},
        "feature_offsets has 2 at 4: offsets start at 0",
    ),
    "ids: outside": (
        {"feature_ids": with_value(IDS, 21, 9)},
        "feature_ids has 9 at 21 and there are",
    ),
    # Words 0 and 1 have the first 2 places, the second word's are 2 and 5; word 2's follow.
    "ids: unsorted": (
        {"feature_ids": with_value(IDS, 1, 1)},
        "feature_ids of 'word 1' do not rise",
    ),
    "ids: twice": ({"feature_ids": with_value(IDS, 21, 1)}, "feature_ids of 'word 12' do not rise"),
    "values: few": ({"feature_values": FULL.feature_values[1:]}, "feature_values has the shape"),
    "values: nan": (
        {"feature_values": with_value(FULL.feature_values, 3, np.nan)},
        "feature_values has nan at 3: give finite numbers",
    ),
    "background: nan": (
        {"log_background": with_value(FULL.log_background, 2, np.nan)},
        "log_background has nan for 'word 2': give nats, -inf for no mass",
    ),
    "unknown": ({"unknown": "<unk>"}, "unknown is '<unk>', which is not among the words 'word 0'"),
    "boundary": ({"boundary": "</s>"}, "boundary is '</s>', which is not among the words"),
    "marks": ({"unknown": "word 0"}, "unknown is 'word 0', and so is the boundary"),
    "alphabet": ({"alphabet": ("a", "ch")}, "alphabet has 'ch', which is not one character"),
    "alphabet: twice": ({"alphabet": ("a", "b", "a")}, "alphabet has 'a' twice, at 0 and 2"),
    "left_out": ({"left_out": {"a": -1}}, "left_out has -1: give 0 or more"),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_fields_of_other_types_are_refused(name):
    fields, message = WRONG_TYPES[name]
    with pytest.raises(TypeError, match=re.escape(f"Lexicon.{message}")):
        dataclasses.replace(FULL, **fields)


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_fields_that_do_not_fit_are_refused(name):
    fields, message = WRONG_VALUES[name]
    with pytest.raises(ValueError, match=re.escape(f"Lexicon.{message}")):
        dataclasses.replace(FULL, **fields)


def test_what_is_allowed():
    massless = dataclasses.replace(FULL, log_background=np.full(13, -np.inf))
    assert len(massless) == 13
    without = with_features(examples.plain_lexicon(), [{}] * 13)
    assert without.feature_names == ()
    assert without.features_of(12) == {}
    Lexicon(("a",), np.zeros(1, np.int32), unknown="a")


@pytest.mark.parametrize("count", [4, 14])
def test_a_dict_of_features_for_each_word(count):
    with pytest.raises(ValueError, match=f"features has {count} dicts and the lexicon 13 words"):
        with_features(examples.plain_lexicon(), [{"a": 1.0}] * count)


def test_features_keep_the_order_of_the_names_given():
    lexicon = with_features(
        examples.plain_lexicon(2), [{"a": 1.0, "b": 2.0, "c": 3.0}, {"b": 4.0}], names=("b", "a")
    )
    assert lexicon.feature_names == ("b", "a")
    assert lexicon.feature_ids.tolist() == [0, 1, 0]
    assert lexicon.feature_values.tolist() == [2, 1, 4]
    with pytest.raises(ValueError, match="'a' twice, at 0 and 1"):
        with_features(examples.plain_lexicon(2), [{"a": 1.0}, {}], names=("a", "a"))


def test_a_damaged_file_is_an_error_of_the_user(tmp_path):
    path = tmp_path / "lexicon.npz"
    with pytest.raises(UserError, match="is missing or not a lexicon of this zoo"):
        Lexicon.load(path)
    FULL.save(path)
    content = path.read_bytes()
    for contents in (b"", b"no lexicon", content[:-200]):
        path.write_bytes(contents)
        with pytest.raises(UserError, match="is missing or not a lexicon of this zoo"):
            Lexicon.load(path)
    path.write_bytes(content)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name, array in (
        ("counts", arrays["counts"][:4]),
        ("words", np.frombuffer(b"7", np.uint8)),
        ("left_out", np.frombuffer(b"[1]", np.uint8)),
        ("fused", np.frombuffer(b"[1]", np.uint8)),
        ("left_out", np.frombuffer(b'{"a": %d}' % 2**63, np.uint8)),
        ("of_a_later_version", np.zeros(3)),
        ("digest", np.zeros(3, np.uint8)),
    ):
        with open(path, "wb") as file:
            np.savez(file, **{**arrays, name: array})
        with pytest.raises(UserError, match=r"lexicon\.npz is missing or not a lexicon"):
            Lexicon.load(path)


def test_it_is_shown_in_a_line():
    assert repr(examples.plain_lexicon(2)) == "Lexicon(2 words: 'word 0', 'word 1')"
    assert repr(FULL) == (
        "Lexicon(13 words: 'word 0', 'word 1', 'word 2', ...; 9 features; a background; "
        "unknown 'word 1'; boundary 'word 0')"
    )
    assert "signatures" not in vars(dataclasses.replace(FULL))


def test_other_words_have_no_features():
    replaced = FULL.with_words(("word 0", "new", "word 1"), np.array([3, 0, 1]))
    assert (replaced.unknown, replaced.boundary) == ("word 1", "word 0")
    assert replaced.tables() == {}
    assert replaced.log_background is None


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int16])
def test_features_are_those_of_their_numbers_in_any_type(kind):
    cast = dataclasses.replace(
        FULL,
        feature_offsets=FULL.feature_offsets.astype(kind),
        feature_ids=FULL.feature_ids.astype(kind),
    )
    np.testing.assert_array_equal(cast.signatures[0], FULL.signatures[0])
    words = FULL.words[4:0:-1]
    for word in range(len(words)):
        selected, expected = cast.select_words(words), FULL.select_words(words)
        assert selected.features_of(word) == expected.features_of(word)
