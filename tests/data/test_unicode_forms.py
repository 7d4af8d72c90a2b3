"""Accents as one character and as two."""

import logging

import numpy as np
import pytest

from zoo.data import Corpus, Source, Vocabulary, unicode_forms
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
    assert unicode_forms.in_two_forms(words) == expected


@pytest.mark.parametrize(
    ("train", "validation", "said"),
    [([NFC], [NFC], False), ([NFC, NFD], [NFC], True), ([NFC], [NFD], True)],
)
def test_texts_in_two_forms_are_told(train, validation, said, caplog):
    with caplog.at_level(logging.WARNING, "zoo"):
        lexicon, _ = Vocabulary().build(Words(train, validation))
    assert set(train) <= {*lexicon.words}  # as they are
    assert caplog.text.count(f"NFC and NFD, as in '{NFC}'") == said


def test_an_unknown_word_that_is_known_in_another_form():
    lexicon = Lexicon(words=("a", NFC), counts=np.array([1, 2]))
    assert unicode_forms.note(["b", "\u00fc"], lexicon) is None
    assert unicode_forms.note(["b", NFD], lexicon) == (
        f"'{NFD}': words of the training text in another Unicode form: convert the texts to one "
        "form, for instance with uconv -x nfc"
    )
    vocabulary = Vocabulary(unknown="refused", boundary="none")
    with pytest.raises(UserError, match=r"in another Unicode form: .*uconv -x nfc\)\.$"):
        vocabulary.encode(Corpus("the text", [["a", NFD]]), lexicon)
