"""Files of word alignments in Pharaoh's format, and of bilingual dictionaries.

A line of an alignment file holds the links of a sentence pair. A link `i-j` aligns the source word
at position i with the target word at position j, both from 0; a pair without links has a blank
line:

    0-0 1-2 2-1

A line of a dictionary has a source word, a tab, and its translation.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from zoo.errors import UserError, shortened
from zoo.sources import files

Link = tuple[int, int]
# At most nine digits: Python refuses to parse integers of several thousand digits.
_LINK = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def read_alignments(
    path: str,
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
    kept: Sequence[bool] = (),
) -> list[list[Link]]:
    """Reads the links of each sentence pair, in the order of the file, without duplicates.

    A file may also have a line for each pair of the texts, those included that are not `kept`.
    """
    part = files.Part.parse(path)
    file = files.find(part.path)
    lines = [*files.read_lines(part.path, files.LONGEST_SENTENCE)]
    if len(lines) == len(kept):
        lines = [*itertools.compress(lines, kept)]
    lines = lines[part.range]
    if len(lines) != len(sources):
        raise UserError(
            f"{path} has {len(lines):,} lines for {len(sources):,} sentence pairs: give a line of "
            "links for each, blank where there are none."
        )
    alignments = []
    for (number, line), source, target in zip(lines, sources, targets, strict=True):
        links = [_link(text, f"{file}, line {number}") for text in line.split()]
        for i, j in links:
            if i >= len(source) or j >= len(target):
                raise UserError(
                    f"{file}, line {number}: the link {i}-{j} lies outside its pair of "
                    f"{len(source)} source and {len(target)} target words, which are counted from "
                    "0: align the same files, in this order."
                )
        alignments.append([*dict.fromkeys(links)])
    return alignments


def pharaoh(links: Iterable[Link]) -> str:
    """Formats the links of a pair as a line, without a line break."""
    return " ".join(f"{i}-{j}" for i, j in links)


def read_dictionary(path: str) -> dict[str, str]:
    """Reads a dictionary file as {source word: target word}."""
    file = files.find(path)
    dictionary: dict[str, str] = {}
    for number, line in enumerate(files.read_text(file).removesuffix("\n").split("\n"), 1):
        words = line.split("\t")
        if len(words) != 2 or any(len(word.split()) != 1 for word in words):
            raise UserError(
                f"{file}, line {number}: {shortened(line, 80)!r} is not an entry: write a source "
                "word, a tab and a target word."
            )
        source, target = (word.strip() for word in words)
        if source in dictionary:
            raise UserError(
                f"{file}, line {number}: the source word {source!r} occurs twice: keep one."
            )
        dictionary[source] = target
    return dictionary


def dictionary_lines(dictionary: Mapping[str, str]) -> list[str]:
    """Formats a dictionary as the lines of a file, with line breaks."""
    return [f"{source}\t{target}\n" for source, target in dictionary.items()]


def _link(text, where):
    match = _LINK.fullmatch(text)
    if not match:
        raise UserError(
            f"{where}: {shortened(text, 80)!r} is not a link: write source-target positions, as "
            "in 0-0 1-2."
        )
    return int(match[1]), int(match[2])
