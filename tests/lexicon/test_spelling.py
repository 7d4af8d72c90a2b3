"""Spellings and their prefixes, by hand."""

import dataclasses

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.lexicon import spelling as spellings
from zoo.lexicon.spelling import (
    BEGIN,
    BLOCK,
    BOUNDARY,
    END,
    MARKS,
    PADDING,
    UNKNOWN_LETTER,
    UNKNOWN_WORD,
    Spelling,
    prefix_tree,
)


def lexicon_of(*words, **fields):
    return Lexicon(words=words, counts=np.ones(len(words), np.int64), **fields)


def rows(tables):
    """The spellings without their filling."""
    pairs = zip(tables["letters"], tables["lengths"], strict=True)
    for letters, length in pairs:
        assert (letters[length:] == PADDING).all()
    pairs = zip(tables["letters"], tables["lengths"], strict=True)
    return [letters[:length].tolist() for letters, length in pairs]


def spell(tables):
    """As in the paper: begin marks as o, end marks as dots."""
    marks = {BEGIN: "o", END: "."}
    return ["".join(marks.get(n) or chr(n - MARKS) for n in row) for row in rows(tables)]


def test_padding_is_that_of_the_paper():
    words = lexicon_of("a", "na", "ale", "byla", "treba")
    light, full = Spelling(), Spelling(padding="full")
    assert spell(light.tables(words, 5)) == ["ooa..", "oona.", "oale.", "obyla.", "otreba."]
    assert spell(full.tables(words, 5)) == [
        "ooooa....",
        "oooona....",
        "ooooale....",
        "oooobyla....",
        "ooootreba....",
    ]
    assert spell(light.tables(words, 1)) == ["oa.", "ona.", "oale.", "obyla.", "otreba."]
    assert spell(full.tables(words, 1)) == ["a", "na", "ale", "byla", "treba"]


def test_fixed_padding_gives_all_words_one_length():
    """That of the longest word; the unknown word has letters, and the boundary a mark."""
    words = lexicon_of("", "na", "treba", "</s>", "<?>", boundary="</s>", unknown="<?>")
    o, *letters = [BEGIN, *(MARKS + ord(letter) for letter in "natre<?>")]
    n, a, t, r, e, *unknown = letters
    tables = Spelling(padding="fixed", longest=4).tables(words, 3)
    assert tables["lengths"].tolist() == [6] * 5
    assert tables["letters"].tolist() == [
        [o, END, PADDING, PADDING, PADDING, PADDING],
        [o, n, a, END, PADDING, PADDING],
        [o, t, r, e, MARKS + ord("b"), END],
        [o, BOUNDARY, END, PADDING, PADDING, PADDING],
        [o, *unknown, END, PADDING],
    ]
    assert Spelling(padding="fixed", longest=2).tables(words, 5)["letters"].shape == (5, 5)


def test_bytes_and_characters_of_odd_words():
    combining, right_to_left, emoji = "e\u0301", "\u05e9\u05dc", "\U0001f469\u200d\U0001f680"
    words = lexicon_of("", "\u00e9", combining, right_to_left, emoji, "\ud800")
    letters = Spelling().letters(words)
    assert letters[0] == []
    assert letters[1] == [MARKS + 0xC3, MARKS + 0xA9]
    assert letters[2] == [MARKS + ord("e"), MARKS + 0xCC, MARKS + 0x81]
    assert letters[3] == [MARKS + byte for byte in (0xD7, 0xA9, 0xD7, 0x9C)]  # in logical order
    assert len(letters[4]) == 11
    assert len(letters[5]) == 3
    by_character = Spelling(unit="characters")
    assert [len(row) for row in by_character.letters(words)] == [0, 1, 2, 2, 3, 1]
    assert by_character.letter_count(words) == MARKS + 9
    for spelling in (Spelling(), by_character):
        tables = spelling.tables(words, 4)
        assert tables["letters"].dtype == tables["lengths"].dtype == np.int32
        assert tables["lengths"].min() == 4
        for place, word in enumerate(words.words[:-1]):
            assert spellings.word(spelling.letters(words)[place], words, spelling) == word


def test_an_empty_word_is_its_marks():
    words = lexicon_of("", "ab")
    assert spell(Spelling().tables(words, 5)) == ["ooo..", "ooab."]
    assert rows(Spelling(padding="full").tables(words, 1))[0] == [END]
    assert rows(Spelling().sequence_tables(words))[0] == [END]


def test_long_words_are_cut_and_counted():
    words = lexicon_of("x" * 10_000, "abc", "abcd", "\u00e9\u00e9")
    spelling = Spelling(longest=3)
    cut = "words cut by the head"
    assert spelling.warnings(words, "head")[cut] == 3  # the last has four bytes
    assert dataclasses.replace(spelling, unit="characters").warnings(words, "head")[cut] == 2
    assert spell(spelling.tables(words, 2))[:3] == ["oxxx.", "oabc.", "oabc."]
    assert Spelling(longest=10_000).tables(words, 2)["letters"].shape == (4, 10_002)


def test_a_speller_ends_words_that_are_not_full():
    a, b, c = (MARKS + ord(letter) for letter in "abc")
    words = lexicon_of("ab", "abc", "abcd")
    assert rows(Spelling(longest=3).sequence_tables(words)) == [[a, b, END], [a, b, c], [a, b, c]]
    assert rows(Spelling(longest=4).sequence_tables(words))[1] == [a, b, c, END]


def test_marks_of_the_lexicon_are_letters_of_their_own():
    words = lexicon_of("</s>", "<unk>", "<s>", boundary="</s>", unknown="<unk>")
    for spelling in (Spelling(), Spelling(unit="characters"), Spelling(longest=1)):
        assert spelling.letters(words)[:2] == [[BOUNDARY], [UNKNOWN_WORD]]
    assert words.letters == ("<", ">", "s")
    letters = Spelling().letters(words)
    assert [spellings.word(row, words, Spelling()) for row in letters] == list(words.words)


def test_another_lexicon_keeps_the_alphabet(tmp_path):
    trained = lexicon_of("ba", "c")
    spelling = Spelling(unit="characters")
    new_lexicon = dataclasses.replace(lexicon_of("cab", "zb"), alphabet=trained.letters)
    a, b, c = MARKS, MARKS + 1, MARKS + 2
    assert spelling.letters(trained) == [[b, a], [c]]
    assert spelling.letters(new_lexicon) == [[c, a, b], [UNKNOWN_LETTER, b]]
    assert spelling.letter_count(new_lexicon) == spelling.letter_count(trained)
    assert spellings.word([UNKNOWN_LETTER, b, END, c], new_lexicon, spelling) == "\ufffdb"
    new_lexicon.save(tmp_path / "lexicon.npz")
    loaded = Lexicon.load(tmp_path / "lexicon.npz")
    assert loaded.letters == trained.letters
    assert loaded.digest() == new_lexicon.digest() != lexicon_of("cab", "zb").digest()


@pytest.mark.parametrize(
    "fields", [{"unit": "letters"}, {"padding": "none"}, {"longest": 0}], ids=str
)
def test_wrong_recipes_are_refused(fields):
    (name,) = fields
    with pytest.raises(UserError, match=f"{name} of Spelling is"):
        Spelling(**fields)


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def test_marks_and_damaged_bytes_show_as_replacement_characters():
    lexicon = Lexicon(("a",), np.zeros(1, np.int64), boundary=None, unknown=None)
    for spelling in (Spelling(), Spelling(unit="characters")):
        a = spelling.letters(lexicon)[0][0]
        assert spellings.word([a, BEGIN, a, END, a], lexicon, spelling) == f"a{REPLACEMENT}a"
        for mark in (BOUNDARY, UNKNOWN_WORD):
            assert spellings.word([mark, END], lexicon, spelling) == REPLACEMENT
    marked = Lexicon(("a", "</s>"), np.zeros(2, np.int64), boundary="</s>")
    assert spellings.word([BOUNDARY, END], marked, Spelling()) == "</s>"


def test_words_that_were_cut_or_have_unknown_letters_are_counted():
    lexicon = Lexicon(("ab", "abcd", "xy", "a"), np.zeros(4, np.int64), alphabet=tuple("abcd"))
    assert Spelling(longest=3).warnings(lexicon, "head") == {"words cut by the head": 1}
    assert Spelling("characters", longest=3).warnings(lexicon, "head") == {
        "words cut by the head": 1,
        "words with letters unknown to the head": 1,
    }


def prefix_at(tree, place):
    """The letters of a prefix, found from its end."""
    letters = []
    while place != BLOCK:
        row, column = divmod(int(place) - BLOCK, BLOCK)
        letters.append(int(tree.letter[row, column]))
        place = tree.parent[row, column]
    return letters[::-1]


def test_prefixes_are_nodes_after_the_ones_that_they_continue(random):
    words = [random.integers(3, 6, size=random.integers(1, 9)).tolist() for _ in range(300)]
    tree = prefix_tree(**spellings.table(words), begin=BEGIN)
    spelled = [
        [*prefix_at(tree, n), f] for n, f in zip(tree.node, tree.final.tolist(), strict=True)
    ]
    assert spelled == words
    prefixes = {tuple(word[:size]) for word in words for size in range(1, len(word))}
    assert (tree.parent > 0).sum() == len(prefixes)
    assert tree.letter[0, 0] == BEGIN and not tree.parent[0].any()
    assert (tree.parent // BLOCK <= np.arange(len(tree.parent))[:, None]).all()
