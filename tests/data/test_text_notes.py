"""Notes on texts: accents as one character and as two, and untokenised text."""

import collections
import logging

import numpy as np
import pytest

from zoo.data import Corpus, RawText, Source, Text, Vocabulary, text_notes
from zoo.errors import UserError
from zoo.lexicon import Lexicon

NFC, NFD = "\u00e9t\u00e9", "e\u0301te\u0301"


class Words(Source):
    """Two splits of a sentence each."""

    def __init__(self, train, validation):
        self.texts = {"train": [train], "validation": [validation]}

    def splits(self):
        return ("train", "validation")

    def read(self, split):
        return Corpus(split, self.texts[split])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a", NFC, NFC, "b"], []),
        ([NFD, "e"], []),
        (["a", NFD, NFC, NFD], [NFC]),
        (["\u212b", "\u00c5"], ["\u00c5"]),  # the unit and the letter
        ([*NFD], []),  # characters, all of one form
        ([*"n\u00e9", *NFD], ["\u00e9"]),
        ([*"\u00e7a", *NFD], []),  # another accent
    ],
)
def test_words_in_two_forms(words, expected):
    assert text_notes.in_two_forms(words) == expected


@pytest.mark.parametrize(
    ("train", "validation", "warns"),
    [([NFC], [NFC], False), ([NFC, NFD], [NFC], True), ([NFC], [NFD], True)],
)
def test_texts_in_two_forms_are_told(train, validation, warns, caplog):
    with caplog.at_level(logging.WARNING, "zoo"):
        lexicon, _ = Vocabulary().build(Words(train, validation))
    assert set(train) <= {*lexicon.words}  # as they are
    assert caplog.text.count(f"NFC and NFD, as in '{NFC}'") == warns


def test_unknown_words_that_are_known_in_lower_case_or_with_n_for_numbers():
    lexicon = Lexicon(words=("a", "cat", "N", "N%"), counts=np.array([1, 2, 1, 1]))
    unknown = ["Cat", "A", "1,200.5", "-3", "7%", "1980s", "Bird"]
    notes = [*filter(None, text_notes.notes([unknown], unknown, lexicon, ""))]
    assert notes == [
        "2 of the 7 distinct unknown words, such as 'Cat', 'A', are known in lower case: give the "
        "text as the training text was",
        "3 of the 7 distinct unknown words, such as '1,200.5', '-3', '7%', are known with N for "
        "numbers: give the text as the training text was",
    ]
    few = ["Cat", *(f"b{number}" for number in range(10))]
    assert not [*filter(None, text_notes.notes([few], few, lexicon, ""))]


def test_an_unknown_word_that_is_known_in_another_form():
    lexicon = Lexicon(words=("a", NFC), counts=np.array([1, 2]))
    assert [*text_notes.form_notes(["b", "\u00fc"], lexicon)] == []
    (note,) = text_notes.form_notes(["b", NFD], lexicon)
    assert note == (
        f"'{NFD}': words of the training text in another Unicode form: convert the texts to one "
        "form, for instance with uconv -x nfc"
    )
    vocabulary = Vocabulary(unknown="refused", boundary="none")
    with pytest.raises(UserError, match=r"in another Unicode form: .*uconv -x nfc\)\.$"):
        vocabulary.encode(Corpus("the text", [["a", NFD]]), lexicon)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["le", "\u200b", "chat"], r"such as '\u200b': delete them"),
        (["le", "\ufeff\u00ad"], r"such as '\ufeff\xad': delete them"),
        (["le", "ch\u200cat", "\u2013"], None),  # as in Persian words; a dash
        (["a", "\u200d", "b"], None),  # characters
    ],
)
def test_zero_width_characters_that_are_words_are_told(words, message, caplog):
    with caplog.at_level(logging.WARNING, "zoo"):
        lexicon, _ = Vocabulary().build(Words(words, ["a"]))
    assert set(words) <= {*lexicon.words}
    assert ("zero-width" in caplog.text) == bool(message) and (message or "") in caplog.text


def test_unknown_words_with_zero_width_characters_are_told():
    lexicon = Lexicon(words=("a", "le", NFC), counts=np.array([1, 2, 2]))
    unknown = ["\u200b", "l\u200be", "ch\u200cat", "un"]
    (note,) = text_notes.form_notes(unknown, lexicon)
    assert note == (
        r"'\u200b', 'l\u200be': words of zero-width characters, or known without them: delete "
        "these characters"
    )
    letters = Lexicon(words=("a", " "), counts=np.array([1, 2]))
    assert letters.is_character_level and [*text_notes.form_notes(["\u200b"], letters)] == []


# ------------------------------------------------------------ untokenised text

RAW = "Well, he came. Was it late? No, it was not."
TOKENISED = "Well , he came . Was it late ? No , it was not ."


def test_both_kinds():
    raw, tokenised = (collections.Counter(text.split()) for text in (RAW, TOKENISED))
    assert text_notes.count_marks(raw) == (10, 3, 0)
    assert text_notes.count_marks(tokenised) == (15, 0, 5)
    assert text_notes.looks_tokenised(tokenised) and not text_notes.looks_tokenised(raw)
    without = collections.Counter(["mr.", "smith", "has", "1,000", "u.s.", "shares"])
    assert not text_notes.looks_tokenised(without)
    assert text_notes.looks_tokenised(without + collections.Counter(["<unk>"]))
    assert not text_notes.looks_tokenised(raw + collections.Counter(["<unk>"]))


@pytest.mark.parametrize(("text", "warns"), [(RAW, True), (TOKENISED, False)])
def test_a_lexicon_of_untokenised_text_is_warned_of(tmp_path, caplog, text, warns):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with caplog.at_level(logging.WARNING, "zoo"):
        Vocabulary().build(Text(train=str(path), validation=str(path)))
    assert ("looks untokenised: 3 of its 10 words, as 'Well,', 'late?'" in caplog.text) == warns


@pytest.mark.parametrize(("language", "warns"), [("en", True), ("", False)])
def test_a_second_tokenisation_is_warned_of(tmp_path, caplog, language, warns):
    path = tmp_path / "a.txt"
    path.write_text("abc 's <unk> did n't")
    source = RawText(train=str(path), validation=str(path), language=language, lines="sentences")
    with caplog.at_level(logging.WARNING, "zoo"):
        Vocabulary().build(source)
    assert ("the Moses tokenizer for en splits its other words again" in caplog.text) == warns


def test_an_unknown_word_that_is_known_without_its_mark():
    lexicon = Lexicon(words=("importants", "<unk>", "mr."), counts=np.array([2, 1, 1]))
    words = ["importants.", "mr.x", "«importants", "zèbre.", "."]
    note = text_notes.note([words[:-1]], words, lexicon)
    assert note.startswith("'importants.', '«importants': known without the punctuation marks")
    assert text_notes.note([["zèbre", "zèbre."]], ["zèbre", "zèbre."], lexicon) is None
    assert text_notes.note([[*words, ",", "!", "?"]], words, lexicon) is None
