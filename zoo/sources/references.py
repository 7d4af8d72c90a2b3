"""References of n-best lists: the spoken words, or a human translation."""

import re
from collections.abc import Sequence

from zoo.errors import UserError, named, shortened
from zoo.sources import files, streams
from zoo.sources.nbest import SEPARATOR

# The share of sentences that may begin by chance with a number that is the id of a list.
_BY_CHANCE = 0.1
# Up to this many lines may begin with different numbers without being numbered.
_FEW = 2
# Among so many lines of a text, two begin with the same word, or one begins with a word that is
# found further on in a line: true of 40,000 windows drawn from ten corpora of four languages.
_MANY = 30
# The first word of a line and the last one, where they may be ids: 1000, utt-7, anna_x, (anna).
_FIRST = re.compile(r"\s*((?=\S*(?:[\d_]|[A-Za-z][-.:/@][A-Za-z]))\S+|\(\S+\)|\[\S+\]|<\S+>)(?!\S)")
_LAST = re.compile(r".*?(\([^\s()]+\))\s*")


def read_references(path: str, ids: Sequence[str]) -> dict[str, str]:
    """Reads the references of n-best lists as {id: words}.

    Lines begin with the id of their list and a tab or, as in Kaldi, a blank. If all ids are whole
    numbers, lines may lack ids: line n + 1 belongs to list n, as in Moses and Joshua. Lines have
    ids if any of them has a tab, if all begin with ids, or if more than half begin with different
    ids. Ambiguous files are refused: more than a tenth of the lines begin with ids of lists, or all
    lines begin or end with possible ids that are not of these lists.
    """
    lines = list(streams.read_lines(path, files.LONGEST_SENTENCE))
    numbers = all(id.isascii() and id.isdigit() for id in ids)
    # The lists' spelling of each number, such as 007: zeros before it may differ.
    written = {_number(id): id for id in ids} if numbers else {id: id for id in ids}
    pairs = [_keyed(text, written, numbers) for _, text in lines]
    found = {id for id, _ in pairs if id is not None}
    tabs = [number for number, text in lines if "\t" in text]
    known = [number for (number, _), (id, _) in zip(lines, pairs, strict=True) if id is not None]
    plain = numbers and not tabs and len(known) < len(lines) and 2 * len(found) <= len(lines)
    if numbers and tabs and not found:
        raise UserError(
            f"{path}, line {tabs[0]}: the line has a tab, but no line begins with the id of a "
            f"list, such as {shortened(ids[0], 80)!r}: write an id, a tab and the words on each "
            "line, or lines without tabs."
        )
    if plain:
        _check_plain(lines, known, path)
        pairs = [(written.get(str(n)), text) for n, (_, text) in enumerate(lines)]
    references: dict[str, str] = {}
    for (number, text), (id, words) in zip(lines, pairs, strict=True):
        where = f"{path}, line {number}"
        if SEPARATOR in text:
            raise UserError(
                f"{where}: {SEPARATOR} as in an n-best list: give a file of references."
            )
        if id is None and plain:
            raise UserError(
                f"{where}: this reference is for the list {number - 1}, which does not exist: give "
                "lists and references of the same sentences."
            )
        if id is None:
            raise UserError(
                f"{where}: {shortened(text, 80)!r} does not begin with the id of a list, such as "
                f"{shortened(ids[0], 80)!r}: write an id, a tab and the words on each line, and "
                "references of these lists alone."
            )
        if id in references:
            raise UserError(f"{where}: the id {id!r} comes twice: keep one of its references.")
        references[id] = " ".join(words.split())
    missing = [id for id in ids if id not in references]
    if missing:
        raise UserError(
            f"{path} has no reference for {len(missing):,} of {len(ids):,} lists, "
            f"{named(missing)}: give lists and references of the same sentences."
        )
    return {id: references[id] for id in ids}


def _check_plain(lines, known, path):
    """Raises UserError if lines taken as words alone may begin or end with ids."""
    if len(known) > _BY_CHANCE * len(lines):
        raise UserError(
            f"{path}, line {known[0]}: {len(known):,} of {len(lines):,} lines begin with the id of "
            "a list, which may be a word: write an id, a tab and the words on each line."
        )
    filled = [(number, text) for number, text in lines if text.strip()]
    for pattern, where in ((_FIRST, "begin"), (_LAST, "end")):
        matches = [pattern.match(text) for _, text in filled]
        ids = dict.fromkeys(match[1] for match in matches if match)
        if where == "begin" and _are_names([text.split() for _, text in filled]):
            ids = dict.fromkeys(text.split()[0] for _, text in filled)
        if len(ids) == len(filled) > _FEW:
            raise UserError(
                f"{path}, line {filled[0][0]}: all lines {where} with possible ids, such as "
                f"{shortened(next(iter(ids)), 80)!r}, but not all begin with ids of the lists: "
                "write the id of its list, a tab and the words on each line."
            )


def _are_names(sentences):
    """Whether each of many lines begins with another ASCII word, which no line has further on."""
    first = {words[0] for words in sentences}
    later = {word.lower() for words in sentences for word in words[1:]}
    alone = sum(len(words) == 1 for words in sentences)
    return (
        len(first) == len(sentences) >= _MANY
        and all(word.isascii() and word.lower() not in later for word in first)
        and alone <= _BY_CHANCE * len(sentences)
    )


def _number(text):
    """Strips leading zeros from a number."""
    return text.lstrip("0") or text[:1]


def _keyed(text, written, numbers):
    """Splits a line into (id, words); returns (None, "") for a line without an id."""
    first, *rest = text.split(None, 1) or [""]
    before, _, behind = text.partition("\t")
    # An id may have blanks in it where a tab, or the line, ends it.
    for key, words in ((before.strip(), behind), (first, "".join(rest))):
        id = written.get(_number(key) if numbers else key)
        if id is not None:
            return id, words
    return None, ""
