"""Text that looks untokenised: words with a punctuation mark that belongs to the sentence.

In tokenised text, a comma or question mark is a word of its own. In untokenised text, "importants."
and "importants" are different words, of which one may be unknown. Full stops are counted only where
the lexicon has the word without it, as "Mr." is a word of tokenised text, too.
"""

import collections
import functools
import itertools
import logging
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from zoo.errors import quote
from zoo.lexicon import Lexicon
from zoo.sources import files

logger = logging.getLogger(__name__)

# A word with a mark that ends it, perhaps before quotation marks or brackets; a mark alone.
_ATTACHED = re.compile(r"[^\W_]{2,}[,;:!?]+[\"'”’»)\]]*")
_PUNCTUATION_TOKEN = re.compile(r"[,;:!?.]+")
PUNCTUATION = frozenset(",;:!?.")
MARKS = "\"'“”‘’«»()[],;:!?.…"
# Words that only tokenised text has, such as the Penn Treebank, WikiText or the output of Moses.
_SIGNS = {"<unk>", "<UNK>", "n't", "-lrb-", "-LRB-", "@-@", "@,@", "&apos;s", "&quot;"}
# The least share of a text's tokens that are attached; in tokenised text it is near 0.
SHARE = 0.01
# Forms that texts for language models give to words; the least share of unknown words to be told.
_NUMBER = re.compile(r"[-+]?\d[\d.,:/]*")
_FORMS: dict[str, Callable[[str], str]] = {
    "in lower case": str.lower,
    "with N for numbers": functools.partial(_NUMBER.sub, "N"),
}
_MANY = 0.1


def count_marks(counts: Mapping[str, int]) -> tuple[int, int, int]:
    """Counts (tokens, marks attached to a word, marks alone) of a text."""
    attached = sum(n for word, n in counts.items() if _ATTACHED.fullmatch(word))
    separate = sum(n for word, n in counts.items() if _PUNCTUATION_TOKEN.fullmatch(word))
    return sum(counts.values()), attached, separate


def looks_tokenised(counts: Mapping[str, int]) -> bool:
    """Whether a text has marks that stand alone, or signs of a tokenizer, and hardly any marks
    attached to a word."""
    tokens, attached, separate = count_marks(counts)
    if attached <= SHARE * tokens and not _SIGNS.isdisjoint(counts):
        return True
    return separate > SHARE * tokens and separate > 10 * attached


def warn(counts: Mapping[str, int], language: str = ""):
    """Logs a warning if a training text looks untokenised, many of its words having a mark, is
    tokenised for a language although it has <unk>, or has marks of sentences within its lines."""
    marks = [*filter(files.MARK.fullmatch, counts)]
    if marks:
        logger.warning(
            "the training text has marks of sentences within its lines, where they are words: %s; "
            "break the lines there, or delete the marks",
            quote(marks, 3),
        )
    if language and counts.get("<unk>"):
        logger.warning(
            "the training text has <unk>, as tokenised text has, and the Moses tokenizer for %s "
            "splits its other words again: give --language none to zoo text or zoo try, or --set "
            "data.language= to train.py, if its words stand between blanks",
            language,
        )
    tokens, attached, _ = count_marks(counts)
    if attached <= SHARE * tokens:
        return
    examples = [word for word in counts if _ATTACHED.fullmatch(word)]
    logger.warning(
        "the training text looks untokenised: %s of its %s words, as %s, end with a punctuation "
        "mark and are other words than those without: read it by data.RawText or "
        "data.RawPairs, or tokenise it",
        f"{attached:,}",
        f"{tokens:,}",
        quote(examples, 3),
    )


def note(
    sentences: Iterable[Sequence[str]], unknown: Iterable[str], lexicon: Lexicon
) -> str | None:
    """Returns a note on out-of-vocabulary words that are known without their marks, or None, also
    of a text most of whose marks stand alone."""
    stripped_words = ((word, word.strip(MARKS)) for word in unknown)
    words = [word for word, bare in stripped_words if bare != word and bare in lexicon.ids]
    if not words:
        return None
    counts = collections.Counter(itertools.chain.from_iterable(sentences))
    _, attached, separate = count_marks(counts)
    if attached < separate:
        return None
    return (
        f"{quote(words, 3)}: known without the punctuation marks: tokenise this text as the "
        "training text was, as zoo score and evaluate do with --tokenize LANGUAGE"
    )


def find_split_words(sentences: Iterable[list[str]], lexicon: Lexicon) -> list[str]:
    """Returns words with blanks of the lexicon that the sentences have as several words."""
    parts_by_first: collections.defaultdict = collections.defaultdict(dict)
    for word in lexicon.words:
        parts = word.split()
        if len(parts) > 1:
            parts_by_first[parts[0]][word] = parts
    split_words: dict[str, None] = {}
    for sentence in sentences if parts_by_first else ():
        for place, first in enumerate(sentence):
            if any(map(str.isspace, first.strip())):
                return []  # a treebank, too
            for word, parts in parts_by_first.get(first, {}).items():
                if sentence[place : place + len(parts)] == parts:
                    split_words[word] = None
    return [*split_words]


def notes(
    sentences: Sequence[list[str]], unknown: Sequence[str], lexicon: Lexicon, language: str
) -> Iterator[str | None]:
    """Yields notes on fused and Unicode forms of unknown words, on marks attached to words of a
    text that is not tokenised for a `language`, on case and numbers, on words with blanks that a
    text and the training text read differently, and on marks of sentences within lines."""
    if unknown:
        yield lexicon.fused_note(unknown)
        yield from form_notes(unknown, lexicon)
    if lexicon.is_character_level:
        return
    if unknown and not language:
        yield note(sentences, unknown, lexicon)
    for name, form in _FORMS.items():
        known = [word for word in unknown if form(word) in lexicon.ids]
        if known and len(known) >= _MANY * len(unknown):
            yield (
                f"{len(known):,} of the {len(unknown):,} distinct unknown words, such as "
                f"{quote(known, 3)}, are known {name}: give the text as the training text was"
            )
    words = {*itertools.chain.from_iterable(sentences)}
    marks = sorted(filter(files.MARK.fullmatch, words))
    if marks:
        yield (
            f"{quote(marks, 3)}: marks of sentences within lines, where they are words: "
            "break the lines there, or delete the marks"
        )
    split = find_split_words(sentences, lexicon)
    if split:
        yield (
            f"{quote(split, 3)}: words with blanks in the training text, and several words here: "
            "give the text as CoNLL-U with these words"
        )
    joint = [w for w in unknown if len(w.split()) > 1 and all(x in lexicon.ids for x in w.split())]
    if joint:
        yield (
            f"{quote(joint, 3)}: words with blanks, which the training text has as several words: "
            "give plain text"
        )


# ------------------------- warnings about words that look the same but are different words
# Letters with accents have two Unicode forms, one character (NFC) or two (NFD), and characters of
# no width are not seen at all. Text is read unchanged; a warning tells the user if it mixes the
# forms, or has another form than the training text.

ADVICE = "convert the texts to one form, for instance with uconv -x nfc"


def in_two_forms(words: Iterable[str]) -> list[str]:
    """Returns the words that occur in both Unicode forms (or as a letter and an accent), in NFC."""
    first: dict = {}
    forms: dict = {}
    accents = set()
    for word in words:
        if not word.isascii():
            composed = unicodedata.normalize("NFC", word)
            if first.setdefault(composed, word) != word:
                forms[composed] = None
            if len(word) == 1 and unicodedata.combining(word):
                accents.add(word)
    for word in first if accents else ():
        marks = unicodedata.normalize("NFD", word)[1:]
        if len(word) == 1 and accents & {*marks}:
            forms[word] = None
    return [*forms]


def visible(word: str) -> str:
    return "".join(letter for letter in word if unicodedata.category(letter) != "Cf")


def warn_of_forms(words: Collection[str]):
    """Logs a warning if words of a text occur in both forms, or cannot be seen."""
    unseen = [word for word in words if not (word.isascii() or visible(word))]
    if unseen and any(len(visible(word)) > 1 for word in words):  # words, and not characters
        logger.warning(
            "the texts have zero-width characters that are words, such as %s: delete them",
            quote(unseen, 3),
        )
    forms = in_two_forms(words)
    if forms:
        logger.warning(
            "the texts have letters in two Unicode forms, NFC and NFD, as in %s, which are "
            "different words: %s",
            quote(forms, 3),
            ADVICE,
        )


def form_notes(unknown: Iterable[str], lexicon: Lexicon) -> Iterator[str]:
    """Yields notes on words that are known in another form, or without invisible letters."""
    unknown = [word for word in unknown if not word.isascii()]
    if not unknown:
        return
    composed = functools.partial(unicodedata.normalize, "NFC")
    composed_words = {composed(word) for word in lexicon.words if not word.isascii()}
    twins = [word for word in unknown if composed(word) in composed_words]
    if twins:
        yield f"{quote(twins, 3)}: words of the training text in another Unicode form: {ADVICE}"
    pairs = [(word, visible(word)) for word in unknown]
    hidden = [word for word, bare in pairs if bare != word and (not bare or bare in lexicon.ids)]
    if hidden and not lexicon.is_character_level:
        yield (
            f"{quote(hidden, 3)}: words of zero-width characters, or known without them: delete "
            "these characters"
        )
