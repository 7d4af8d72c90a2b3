"""Source sentences read by `zoo translate`, from a split, a file or standard input."""

import io
import sys
from collections.abc import Iterator

from zoo.errors import UserError


def read(translator, file, split) -> Iterator[list[str]]:
    """Yields the words of each source sentence."""
    from zoo.sources import files

    if split:
        run = translator.runs[0]
        yield from run.experiment.source_of(translator.pairs(split)).sentences
    elif file and file != "-":
        text = files.read_text(files.find(file))
        yield from map(translator.read, text.removesuffix("\n").split("\n") if text else [])
    else:
        yield from map(translator.read, _standard_input())


def _standard_input() -> Iterator[str]:
    """Yields the lines of standard input; raises UserError for a line that is not UTF-8 text."""
    from zoo.sources import files

    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    for number, line in enumerate(sys.stdin, 1):
        if any("\udc80" <= letter <= "\udcff" for letter in line):
            raise UserError(
                f"standard input, line {number}: not UTF-8: convert it, for instance with iconv "
                "-f latin1 -t utf-8."
            )
        if "\0" in line:
            raise UserError(f"standard input, line {number}: binary: give UTF-8 text.")
        yield from (text for _, text in files.broken(line, number))


def only_one(sources, option) -> Iterator[list[str]]:
    """Returns the one sentence of a text; raises UserError if it has none, or more."""
    sentences = [words for words in sources if words]
    if len(sentences) != 1:
        option = option.replace("_", "-")
        raise UserError(
            f"--{option} draws one sentence, and this text has {len(sentences):,}: give one line."
        )
    return iter(sentences)
