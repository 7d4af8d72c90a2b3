"""References of n-best lists, and texts with a hypothesis a line, as {id: words}.

A line has an id, a tab or a blank, and words; or words (id), as in trn; or, for lists numbered from
0, words alone. docs/rescoring.md tells when lines have ids. Ambiguous files are refused.
"""

import re
from collections.abc import Sequence

from zoo.errors import UserError, quote, shortened
from zoo.lab.evaluation.nbest import SEPARATOR, bare_words, detect_format, parse_lists, read_lines
from zoo.sources import files, foreign_formats

# The share of sentences that may begin by chance with a number that is the id of a list.
_BY_CHANCE = 0.1
# Up to this many lines may begin with different numbers without being numbered.
_MOST_UNNUMBERED = 2
# Among so many lines of a text, two begin with the same word, or one begins with a word that is
# found further on in a line: true of 40,000 windows drawn from ten corpora of four languages.
_LEAST_SENTENCES = 30
# The first word of a line and the last one, where they may be ids: 1000, utt-7, anna_x, (anna).
_FIRST = re.compile(r"\s*((?=\S*(?:[\d_]|[A-Za-z][-.:/@][A-Za-z]))\S+|\(\S+\)|\[\S+\]|<\S+>)(?!\S)")
# PocketSphinx writes a score behind an id: (utt-7 -1234).
_LAST = re.compile(r"(.*\S)?\s*(\(([^\s()]+)(?: -?[0-9]+)?\))\s*$")
# A line of trn, CTM or STM that is not read, and a word of trn such as (uh) or (%hesitation).
_COMMENT = ";;"
_OPTIONAL = re.compile(r"\(\S+\)")


def read_best(path: str) -> dict[str, str]:
    """Reads the first hypothesis of each list, or of a text with ids, as {id: words}."""
    form, body = detect_format(filter(lambda line: line[1].strip(), read_lines(path)))
    if form in ("json", "fields"):
        return {
            nbest.id: nbest.hypotheses[0].text for nbest in parse_lists(body, path, sparse=True)[1]
        }
    lines = [*body]
    if not lines:
        raise UserError(f"{path} has no hypotheses: give lists, or lines of an id and words.")
    _check_text(lines, path)
    best: dict[str, str] = {}
    trn_lines = _trn_lines(lines)
    _check_trn(trn_lines, path)
    has_ids = trn_lines or any("\t" in text or _FIRST.match(text) for _, text in lines)
    may_be_words = not has_ids and not _are_names([text.split() for _, text in lines])
    for number, text in trn_lines or lines:
        id, *words = text.split("\t", 1) if "\t" in text else text.split(None, 1)
        if id.strip() in best or may_be_words:
            raise UserError(
                f"{path}, line {number}: the id {id.strip()!r} "
                f"{'may be a word' if may_be_words else 'comes twice'}: write an id, a tab and the "
                "words on each line, and each id once."
            )
        best[id.strip()] = bare_words("".join(words))
    return best


def _check_text(lines, path):
    """Raises UserError unless lines may be of a text with a hypothesis or a reference a line."""
    remedy = "write an id, a tab and the words on each line, or words (id), as in trn"
    foreign_formats.check((text for _, text in lines), path, remedy, foreign_formats.WITH_IDS)
    for number, text in lines:
        if text.count("\t") > 1:
            raise UserError(f"{path}, line {number}: several tabs: write an id, a tab and words.")


def _trn_lines(lines):
    """Returns the lines `words (id)` of a trn file as `id, tab, words`; [] for another file."""
    filled = [line for line in lines if line[1].strip() and not line[1].startswith(_COMMENT)]
    matches = [(number, match) for number, text in filled if (match := _LAST.match(text))]
    if len({match[2] for _, match in matches}) < len(filled):
        return []
    return [(number, match.expand(r"\3\t\1")) for number, match in matches]


def _check_trn(lines, path):
    """Raises UserError for words of lines `id, tab, words` that sclite does not count as words."""
    for number, text in lines:
        words = text.partition("\t")[2].split()
        if "{" in words:
            raise UserError(f"{path}, line {number}: it has alternatives {{ / }}: write one.")
        optional = next(filter(_OPTIONAL.fullmatch, words), "")
        if optional:
            raise UserError(
                f"{path}, line {number}: {shortened(optional, 80)!r} is a word that sclite lets "
                "hypotheses leave out: delete it, or its parentheses."
            )


def read_references(path: str, ids: Sequence[str]) -> dict[str, str]:
    """Reads the references of n-best lists as {id: words}."""
    # docs/rescoring.md tells when lines have ids. `_check_plain` refuses ambiguous files.
    lines = list(files.read_lines(path, files.LONGEST_SENTENCE))
    _check_text(lines, path)
    numbers = all(id.isascii() and id.isdigit() for id in ids)
    # The lists' spelling of each number, such as 007: zeros before it may differ.
    id_by_key = {_number(id): id for id in ids} if numbers else {id: id for id in ids}
    trn_lines = _trn_lines(lines)
    if any(_split_id(text, id_by_key, numbers)[0] for _, text in trn_lines):
        lines = trn_lines
        _check_trn(lines, path)
    pairs = [_split_id(text, id_by_key, numbers) for _, text in lines]
    file_ids = {id for id, _ in pairs if id is not None}
    tabs = [number for number, text in lines if "\t" in text]
    with_id = [number for (number, _), (id, _) in zip(lines, pairs, strict=True) if id is not None]
    plain = numbers and not tabs and len(with_id) < len(lines) and 2 * len(file_ids) <= len(lines)
    if numbers and tabs and not file_ids:
        raise UserError(
            f"{path}, line {tabs[0]}: the line has a tab, but no line begins with the id of a "
            f"list, such as {shortened(ids[0], 80)!r}: write an id, a tab and the words on each "
            "line, or lines without tabs."
        )
    if plain:
        _check_plain(lines, with_id, path)
        pairs = [(id_by_key.get(str(n)), text) for n, (_, text) in enumerate(lines)]
    references: dict[str, str] = {}
    for (number, text), (id, words) in zip(lines, pairs, strict=True):
        wrong = ""
        if SEPARATOR in text:
            wrong = f"{SEPARATOR} as in an n-best list: give a file of references"
        elif id is None and plain:
            wrong = f"this reference is for the list {number - 1}, which does not exist: give "
            wrong += "lists and references of the same sentences"
        elif id is None:
            wrong = f"{shortened(text, 80)!r} does not begin with the id of a list, such as "
            wrong += f"{shortened(ids[0], 80)!r}: write an id, a tab and the words on each line, "
            wrong += "and references of these lists alone"
        elif id in references:
            wrong = f"the id {id!r} comes twice: keep one of its references"
        if wrong:
            raise UserError(f"{path}, line {number}: {wrong}.")
        references[id or ""] = bare_words(words)
    missing = [id for id in ids if id not in references]
    if missing:
        raise UserError(
            f"{path} has no reference for {len(missing):,} of {len(ids):,} lists, "
            f"{quote(missing)}: give lists and references of the same sentences."
        )
    if not any(references.values()):
        raise UserError(f"{path} has no words, so errors have no rate: give references with words.")
    return {id: references[id] for id in ids}


def _check_plain(lines, with_id, path):
    """Raises UserError if lines taken as words alone may begin or end with ids."""
    if len(with_id) > _BY_CHANCE * len(lines):
        raise UserError(
            f"{path}, line {with_id[0]}: {len(with_id):,} of {len(lines):,} lines begin with the "
            "id of a list, which may be a word: write an id, a tab and the words on each line."
        )
    filled = [(number, text) for number, text in lines if text.strip()]
    for pattern, edge in ((_FIRST, "begin"), (_LAST, "end")):
        matches = [pattern.match(text) for _, text in filled]
        ids = dict.fromkeys(match[match.lastindex or 0] for match in matches if match)
        if edge == "begin" and _are_names([text.split() for _, text in filled]):
            ids = dict.fromkeys(text.split()[0] for _, text in filled)
        if len(ids) == len(filled) > _MOST_UNNUMBERED:
            raise UserError(
                f"{path}, line {filled[0][0]}: all lines {edge} with possible ids, such as "
                f"{shortened(next(iter(ids)), 80)!r}, but not all begin with ids of the lists: "
                "write the id of its list, a tab and the words on each line."
            )


def _are_names(sentences):
    """Whether each of many lines begins with another ASCII word, which no line has further on."""
    first = {words[0] for words in sentences}
    later = {word.lower() for words in sentences for word in words[1:]}
    single_words = sum(len(words) == 1 for words in sentences)
    return (
        len(first) == len(sentences) >= _LEAST_SENTENCES
        and all(word.isascii() and word.lower() not in later for word in first)
        and single_words <= _BY_CHANCE * len(sentences)
    )


def _number(text):
    return text.lstrip("0") or text[:1]


def _split_id(text, id_by_key, numbers):
    """Splits a line into (id, words); returns (None, "") for a line without an id."""
    first, *behind_blank = text.split(None, 1) or [""]
    before, _, behind = text.partition("\t")
    # An id may have blanks in it where a tab, or the line, ends it.
    for key, words in ((before.strip(), behind), (first, "".join(behind_blank))):
        id = id_by_key.get(_number(key) if numbers else key)
        if id is not None:
            return id, words
    return None, ""
