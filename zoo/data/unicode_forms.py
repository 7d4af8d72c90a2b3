"""Warnings about words that look the same but are different words.

Letters with accents have two Unicode forms, one character (NFC) or two (NFD), and characters of no
width are not seen at all. Text is read unchanged; a warning tells the user if it mixes the forms,
or has another form than the training text.
"""

import logging
import unicodedata
from collections.abc import Collection, Iterable, Iterator

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


def visible(word: str) -> str:
    """Returns a word without format characters, which have no width."""
    return "".join(letter for letter in word if unicodedata.category(letter) != "Cf")


def warn(words: Collection[str]):
    """Logs a warning if words of a text occur in both forms, or cannot be seen."""
    unseen = [word for word in words if not (word.isascii() or visible(word))]
    if unseen and any(len(visible(word)) > 1 for word in words):  # words, and not characters
        logger.warning(
            "the texts have zero-width characters that are words, such as %s: delete them",
            named(unseen, 3),
        )
    forms = in_two_forms(words)
    if forms:
        logger.warning(
            "the texts have letters in two Unicode forms, NFC and NFD, as in %s, which are "
            "different words: %s",
            named(forms, 3),
            ADVICE,
        )


def notes(unknown: Iterable[str], lexicon: Lexicon) -> Iterator[str]:
    """Yields notes on out-of-vocabulary words that the lexicon has in the other form, or that are
    nothing, or known, without zero-width characters.
    """
    unknown = [word for word in unknown if not word.isascii()]
    if not unknown:
        return
    known = {composed(word) for word in lexicon.words if not word.isascii()}
    alike = [word for word in unknown if composed(word) in known]
    if alike:
        yield f"{named(alike, 3)}: words of the training text in another Unicode form: {ADVICE}"
    seen = [(word, visible(word)) for word in unknown]
    hidden = [word for word, bare in seen if bare != word and (not bare or bare in lexicon.ids)]
    if hidden and not lexicon.of_characters:
        yield (
            f"{named(hidden, 3)}: words of zero-width characters, or known without them: delete "
            "these characters"
        )
