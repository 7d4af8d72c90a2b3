"""Text that looks untokenised is told, and tokenised text is not."""

import collections
import logging

import numpy as np
import pytest

from zoo.data import Text, Vocabulary, text_notes
from zoo.lexicon import Lexicon

RAW = "Well, he came. Was it late? No, it was not."
TOKENISED = "Well , he came . Was it late ? No , it was not ."


def test_both_kinds():
    raw, tokenised = (collections.Counter(text.split()) for text in (RAW, TOKENISED))
    assert text_notes.counts_of(raw) == (10, 3, 0)
    assert text_notes.counts_of(tokenised) == (15, 0, 5)
    assert text_notes.looks_untokenised(raw) and not text_notes.looks_tokenised(raw)
    assert text_notes.looks_tokenised(tokenised) and not text_notes.looks_untokenised(tokenised)
    without = collections.Counter(["mr.", "smith", "has", "1,000", "u.s.", "shares"])
    assert not text_notes.looks_untokenised(without) and not text_notes.looks_tokenised(without)


@pytest.mark.parametrize(("text", "told"), [(RAW, True), (TOKENISED, False)])
def test_a_lexicon_of_untokenised_text_is_warned_of(tmp_path, caplog, text, told):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with caplog.at_level(logging.WARNING, "zoo"):
        Vocabulary().build(Text(train=str(path), validation=str(path)))
    assert ("looks untokenised: 3 of its 10 words, as 'Well,', 'late?'" in caplog.text) == told


def test_an_unknown_word_that_is_known_without_its_mark():
    lexicon = Lexicon(words=("importants", "<unk>", "mr."), counts=np.array([2, 1, 1]))
    note = text_notes.note(["importants.", "mr.x", "«importants", "zèbre.", "."], lexicon)
    assert note.startswith("'importants.', '«importants': known without the punctuation marks")
    assert text_notes.note(["zèbre", "zèbre."], lexicon) is None
