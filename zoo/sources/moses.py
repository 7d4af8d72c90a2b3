"""Words of untokenised text by the rules of the Moses tokenizer, and text from words.

The rules are those of the Moses translation toolkit (Koehn et al. 2007), as the package sacremoses
ports them to Python: punctuation is separated from words, except in numbers, abbreviations and
acronyms; the apostrophe belongs to one side or the other, depending on the language. Letters are
never changed: a token is a piece of its line. A typographic apostrophe is treated like a straight
one, and combining marks stay with their letters.
"""

import functools
import html
import itertools
import re
import unicodedata

from zoo.base import lazy
from zoo.errors import UserError

# Languages with abbreviations of their own in Moses.
LANGUAGES = (
    *("as", "bn", "ca", "cs", "de", "el", "en", "es", "et", "fi", "fr", "ga", "gu", "hi", "hu"),
    *("is", "it", "kn", "lt", "lv", "ml", "mni", "mr", "nl", "or", "pa", "pl", "pt", "ro", "ru"),
    *("sk", "sl", "sv", "ta", "te", "tdt", "yue", "zh"),
)
_APOSTROPHE = str.maketrans("’", "'")
_NUMERIC = " #NUMERIC_ONLY#"
# Moses's split-sentences.perl: an end of a sentence, marks that close it, a blank, marks that open
# the next sentence. Only the first of several marks begins an end: a search from each of them would
# look at the others again.
_END = re.compile(r"(?<![.!?…؟।])([.!?…؟।]+[\"'”’»)\]]*)(?:\s+)(?=([\"'“‘«(\[¿¡„—–-]*\s?)(\w))")
# Ends of sentences that no blank follows.
_WIDE_END = re.compile(r"(?<=[。！？])(?![。！？”’」』）])")
_OPENING = "\"'“‘«([¿¡„—–-"
# Marks that Moses's tokenizer escapes, for Moses's own files give them a meaning.
_ESCAPE = re.compile("&(?:amp|apos|gt|lt|quot|#124|#91|#93);")


def check(language: str, field: str):
    """Raises UserError for a language without rules in Moses."""
    if language not in LANGUAGES:
        raise UserError(
            f"{field} is {language!r}, for which Moses has no rules: give one of "
            f"{', '.join(LANGUAGES)}, or the most similar of these languages."
        )


def spans(line: str, language: str) -> list[tuple[int, int]]:
    """Returns the positions (start, end) of the tokens in a line, in code points."""
    if not language:
        return [match.span() for match in re.finditer(r"\S+", line)]
    plain = line.translate(_APOSTROPHE).replace("<unk>", "xunkx")  # one word, as if of letters
    token_spans: list[tuple[int, int]] = []
    end = 0
    for token in _load_tool("MosesTokenizer", language).tokenize(plain, escape=False):
        ends = []
        for letter in token:  # Moses leaves control characters out
            end = plain.find(letter, end) + 1
            if not end:  # the line has one of the words that Moses puts in place of dots
                return spans(line, "")
            ends.append(end)
        start = ends[0] - 1
        if token_spans and token_spans[-1][1] == start and _is_joined(plain, start):
            start = token_spans.pop()[0]
        token_spans.append((start, end))
    return token_spans


def words(line: str, language: str) -> list[str]:
    """Splits a line into words; see `spans`."""
    if not language:
        return line.split()
    return [line[start:end] for start, end in spans(line, language)]


def text(tokens: list[str], language: str) -> str:
    """Joins words to text as it is written, by the rules of Moses's detokenizer."""
    tokens = [*map(unescaped, tokens)]
    if not language or not tokens:
        return " ".join(tokens)
    plain = [token.translate(_APOSTROPHE) for token in tokens]
    joined = _load_tool("MosesDetokenizer", language).detokenize(plain, unescape=False)
    letters = iter("".join(tokens))
    if len(joined.replace(" ", "")) != len("".join(tokens)):
        return " ".join(tokens)  # one of them stands for something else in Moses, such as @-@
    return "".join(" " if letter == " " else next(letters) for letter in joined)


def unescaped(word: str) -> str:
    """Returns a word without the escapes of Moses's tokenizer, as people write it."""
    return _ESCAPE.sub(lambda match: html.unescape(match[0]), word)


def sentences(paragraph: str, language: str) -> list[str]:
    """Splits a paragraph into sentences, as Moses's split-sentences.perl does."""
    bounds = itertools.pairwise([0, *sentence_ends(paragraph, language, tokenised=not language)])
    return [piece for start, end in bounds if (piece := paragraph[start:end].strip())]


def sentence_ends(paragraph: str, language: str, tokenised: bool = True) -> list[int]:
    """Returns the position behind each sentence of a paragraph; the last is the paragraph's end.
    In tokenised text without capitals, marks that stand alone end sentences."""
    is_lower = tokenised and paragraph.islower()  # capitals do not tell where sentences begin
    ends = {match.start() for match in _WIDE_END.finditer(paragraph)}
    ends |= {
        match.end(1)
        for match in _END.finditer(paragraph)
        if (not match[3].islower() or (is_lower and paragraph[match.start() - 1] == " "))
        and not _continues(paragraph, match, language)
    }
    return sorted({*ends, len(paragraph)})


def _continues(paragraph, match, language):
    """Whether the point of a match belongs to an abbreviation."""
    end = match.start(1)
    before = paragraph[max(0, end - 100) : end].rpartition(" ")[2].lstrip(_OPENING)
    if match[1] != "." or not before:
        return False
    always, numeric = _prefixes(language)
    if before in numeric:
        return match[3].isdigit()
    acronym = re.search(r"\.[^\W\d_a-z-]+$", before) is not None
    return before in always or acronym


def _is_joined(line, start):
    """Whether the letters before and at a position are one character with combining marks."""
    before, current = (unicodedata.category(line[place])[0] for place in (start - 1, start))
    return current == "M" or (before == "M" and current == "L")


@functools.cache
def _prefixes(language) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the abbreviations of a language: (those before any word, those before a number)."""
    prefixes = [*_sacremoses().corpus.NonbreakingPrefixes().words(language)]
    numeric = {line.removesuffix(_NUMERIC) for line in prefixes if line.endswith(_NUMERIC)}
    return frozenset(line for line in prefixes if not line.endswith(_NUMERIC)), frozenset(numeric)


def _sacremoses():
    with lazy.extra():
        import sacremoses
    return sacremoses


@functools.cache
def _load_tool(kind, language):
    return getattr(_sacremoses(), kind)(language)
