"""Formats of recognisers, corpora and documents that hold words and are not plain text.

A text, a list or a file of references in one of these formats is refused by the format's name.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator

from zoo.errors import UserError

# Lines that decide the format of a file, and filled ones among which a mark stands.
HEAD, _MARKED_LINES = 100, 10
_TIMES = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s+(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_COST = r"-?[0-9.]+(?:e[-+]?[0-9]+)?"
# The ids of Kaldi's utterances, such as spk-001 or BAC009S0724W0121: three digits and a mark or a
# letter; F-16 and COVID-19 are words. The bounds keep the time of a search linear.
_ID = r"(?=\S{0,50}[A-Za-z_-])(?=(?:[^\s0-9]{0,50}[0-9]){3})[A-Za-z0-9]\S*"
# Formats of several lines with ids, which readers of references know.
WITH_IDS = ("trn", "a text with ids, as of Kaldi", "a table without known columns")
# {format: the pattern of each line}; the first group of a pattern is an id, which comes once.
_EACH_LINE = {
    "JSON": r'[{\[]\s*(?:".*)?[}\]]',
    "an n-best list": r"[^\s|]+\s+\|\|\|.*\|\|\|.*",
    "a list of SRILM": r"(?:-[0-9]+(?:\.[0-9]+)?\s+){2}[0-9]+(?:\s.*)?",
    "CTM": rf"(?=.*\.[0-9]|\S+\s+[AB12]\s)\S+\s+\S+\s+{_TIMES}(?:\s+\S+){{1,4}}",
    "STM": rf"(?=.*\.[0-9])\S+\s+\S+\s+\S+\s+{_TIMES}(?:\s.*)?",
    WITH_IDS[0]: r"(?:.*\s)?\((?=[^\s()]*[0-9])([^\s()]+)(?: -?[0-9]+)?\)",
    WITH_IDS[1]: rf"({_ID})\s+\S.*",
    # A tab between words, and not beside a mark such as </s>.
    WITH_IDS[2]: r".*[^\s>\]]\s*\t\s*(?!<\S*>$|\[\S*\]$)\S.*",
}
# {format: the pattern of a line at the beginning}
_MARKS = {
    "a lattice": rf"[0-9]+\s+[0-9]+\s+\S+\s+([0-9]+\s+)?({_COST},{_COST}(,[0-9_]*)?|,,[0-9_]*)|"
    r"VERSION=\S+|(N|NODES)=[0-9]+\s+(L|LINKS)=[0-9]+.*",
    "a file of subtitles": r"WEBVTT.*|[0-9:]+[.,][0-9]{3} --> [0-9:]+[.,][0-9]{3}.*",
    "a file of labels": r'#!MLF!#|File type = "ooTextFile.*|@(UTF8|Begin)',
    "RTTM": rf"SPEAKER\s+\S+\s+[0-9]+\s+{_TIMES}\s.*",
    "a list of SRILM": r"NBestList[12]\.0",
    "an n-gram model": r"\\data\\",
    "a table of symbols": r"(<eps>|<epsilon>)\s+0",
    "an alignment": r"# Sentence pair \([0-9]+\) .*|DUMP OF SYSTEM ALIGNMENT .*|\S+\s+#csid\s.*",
    "XML or HTML": r"(?i)<(\?xml|!doctype|html|doc|text|tmx|mteval|(src|ref|tst)set)\b[^>]*>.*",
    "a document": r"%PDF-.*|\{\\rtf.*",
    "a treebank": r"-DOCSTART-.*|#begin document .*|1\t([^\t]*\t){7,}[^\t]*|"
    r"# (sent_id|newdoc|newpar|text|global\.columns)\b.*",
}
_REMEDY = "write the words of each sentence alone on a line"


def check(lines: Iterable[str], path, remedy: str = _REMEDY, known: Collection[str] = ()):
    """Raises UserError for lines of a foreign format, but for those known to a reader."""
    filled = (line.strip() for line in lines if line.strip() and not line.startswith(";;"))
    head = [*itertools.islice(filled, HEAD)]
    first = head[:_MARKED_LINES]
    names = [name for name, mark in _MARKS.items() if any(re.fullmatch(mark, x) for x in first)]
    for name, pattern in _EACH_LINE.items() if head else ():
        matches = [match for match in map(re.compile(pattern).fullmatch, head) if match]
        ids = {match[1] if match.lastindex else match for match in matches}
        if len(ids) == len(head) and (len(head) > 1 or name not in WITH_IDS):
            names.append(name)
    for name in names:
        if name not in known:
            raise UserError(f"{path} is {name}, which is not read: {remedy}.")


def check_text(lines: Iterable[str], path) -> Iterator[str]:
    """Yields the lines of a plain text; raises UserError for lines of a foreign format."""
    lines = iter(lines)
    head = [*itertools.islice(lines, HEAD)]
    check(head, path)
    yield from itertools.chain(head, lines)
