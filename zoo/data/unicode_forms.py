"""Letters with accents in their two Unicode forms: as one character (NFC), or as two (NFD).

They look the same and are different words. Text is read as it is; that it has both, or another
form than the training text, is said.
"""

import logging
import unicodedata
from collections.abc import Iterable

from zoo.errors import named
from zoo.lexicon import Lexicon

logger = logging.getLogger(__name__)
ADVICE = "convert the texts to one form, for instance with uconv -x nfc"


def composed(word: str) -> str:
    """The word in NFC; equal for words that look the same."""
    return unicodedata.normalize("NFC", word)


def in_two_forms(words: Iterable[str]) -> list[str]:
    """The composed forms of words that are there in several, in their order.

    Where characters are words, an accent may stand alone: then letters that have it.
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
    """Logs a warning if the words of a text are in two forms."""
    forms = in_two_forms(words)
    if forms:
        logger.warning(
            "the texts have letters in two Unicode forms, NFC and NFD, as in %s, which are "
            "different words: %s",
            named(forms, 3),
            ADVICE,
        )


def note(unknown: Iterable[str], lexicon: Lexicon) -> str | None:
    """What is to be said of those unknown words that the lexicon has in another form; None if there
    are none."""
    unknown = [word for word in unknown if not word.isascii()]
    if not unknown:
        return None
    known = {composed(word) for word in lexicon.words if not word.isascii()}
    alike = [word for word in unknown if composed(word) in known]
    if not alike:
        return None
    return f"{named(alike, 3)}: words of the training text in another Unicode form: {ADVICE}"
