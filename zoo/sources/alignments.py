"""Files of word alignments in Pharaoh's format, and of dictionaries.

A line of alignments has the links of a sentence pair, `i-j` for the target word at position j and
the source word at position i, both from 0; a pair without links has a blank line:

    0-0 1-2 2-1

A line of a dictionary has a source word, a tab, and its translation.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from zoo.errors import UserError, shortened
from zoo.sources import files, streams

Link = tuple[int, int]
# More digits than any sentence has words are a slip, and Python refuses to read some thousands.
_LINK = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def read_alignments(
    path: str, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]
) -> list[list[Link]]:
    """The links of each pair, in the order of the file; a link that is there twice once.

    Args:
      path: a file in Pharaoh's format, perhaps compressed, and perhaps with a range of its lines.
      sources: the words of the source sentences, a line each.
      targets: the words of the target sentences, a line each.

    Raises:
      UserError: a line is none of links, has one outside its pair, or there are more or fewer lines
        than pairs.
    """
    part = files.Part.parse(path)
    file = files.find(part.path)
    lines = [*streams.read_lines(part.path, files.LONGEST_SENTENCE)][part.range]
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
    """The links of a pair as a line, without its end."""
    return " ".join(f"{i}-{j}" for i, j in links)


def read_dictionary(path: str) -> dict[str, str]:
    """{source word: target word} of a dictionary file.

    Raises:
      UserError: a line is not two words with a tab between them, or a source word is there twice.
    """
    file = files.find(path)
    dictionary: dict[str, str] = {}
    for number, line in enumerate(files.read_text(file).removesuffix("\n").split("\n"), 1):
        words = line.removesuffix("\r").split("\t")
        if len(words) != 2 or any(len(word.split()) != 1 for word in words):
            raise UserError(
                f"{file}, line {number}: {shortened(line, 80)!r} is no entry: write a source "
                "word, a tab and a target word."
            )
        source, target = (word.strip() for word in words)
        if source in dictionary:
            raise UserError(
                f"{file}, line {number}: the source word {source!r} is there twice: keep one."
            )
        dictionary[source] = target
    return dictionary


def dictionary_lines(dictionary: Mapping[str, str]) -> list[str]:
    """The lines of a dictionary's file, with their ends."""
    return [f"{source}\t{target}\n" for source, target in dictionary.items()]


def _link(text, where):
    match = _LINK.fullmatch(text)
    if not match:
        raise UserError(
            f"{where}: {shortened(text, 80)!r} is no link: write source-target positions, as in "
            "0-0 1-2."
        )
    return int(match[1]), int(match[2])
