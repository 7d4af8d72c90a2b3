"""Warnings about letters with accents in two Unicode forms: one character (NFC), or two (NFD).

Words in the two forms look the same but are different words. Text is read unchanged; a warning
tells the user if it mixes the forms, or has another form than the training text.
"""

import logging
import unicodedata
from collections.abc import Iterable

from zoo.errors import named
from zoo.lexicon import Lexicon

logger = logging.getLogger(__name__)
ADVICE = "convert the texts to one form, for instance with uconv -x nfc"


def composed(word: str) -> str:
    """Returns a word in NFC, which is equal for words in either form."""
    return unicodedata.normalize("NFC", word)


def in_two_forms(words: Iterable[str]) -> list[str]:
    """Returns words that occur in both forms, in NFC and in order of occurrence.

    Where characters are words, an accent may be a word of its own: then the letters that have it
    are returned.
    """
    first: dict = {}
    forms: dict = {}
    accents = set()
    for word in words:
        if not word.isascii():
            if first.setdefault(composed(word), word) != word:
                forms[composed(word)] = None
            if len(word) == 1 and unicodedata.combining(word):
                accents.add(word)
    for word in first if accents else ():
        marks = unicodedata.normalize("NFD", word)[1:]
        if len(word) == 1 and accents & {*marks}:
            forms[word] = None
    return [*forms]


def warn(words: Iterable[str]):
    """Logs a warning if words of a text occur in both forms."""
    forms = in_two_forms(words)
    if forms:
        logger.warning(
            "the texts have letters in two Unicode forms, NFC and NFD, as in %s, which are "
            "different words: %s",
            named(forms, 3),
            ADVICE,
        )


def note(unknown: Iterable[str], lexicon: Lexicon) -> str | None:
    """Returns a note on out-of-vocabulary words that the lexicon has in the other form, or None."""
    unknown = [word for word in unknown if not word.isascii()]
    if not unknown:
        return None
    known = {composed(word) for word in lexicon.words if not word.isascii()}
    alike = [word for word in unknown if composed(word) in known]
    if not alike:
        return None
    return f"{named(alike, 3)}: words of the training text in another Unicode form: {ADVICE}"
