"""References of n-best lists: the words that were spoken, or a translation by hand."""

from collections.abc import Sequence

from zoo.errors import UserError, named, shortened
from zoo.sources import streams
from zoo.sources.nbest import SEPARATOR


def read_references(path: str, ids: Sequence[str]) -> dict[str, str]:
    """Reads {id: words} of lists, each with its reference.

    Lines begin with the id of their list and a tab or, as Kaldi has it, a blank. Where all ids are
    whole numbers, lines may be words alone: line n + 1 belongs to the list n, as Moses and Joshua
    count. All lines together tell the two apart: lines have ids if there is a tab in one, or if
    more than half of them begin with ids, each with another one.

    Args:
      path: the file.
      ids: of the lists, in their order.

    Raises:
      UserError: lines should begin with ids and one does not, an id comes twice, a list has no
        reference, or a reference no list; file and line are named.
    """
    lines = list(streams.read_lines(path))
    numbers = all(id.isascii() and id.isdigit() for id in ids)
    # As the lists write them, such as 007, whatever zeros the file begins numbers with.
    written = {_number(id): id for id in ids} if numbers else {id: id for id in ids}
    pairs = [_keyed(text, written, numbers) for _, text in lines]
    found = {id for id, _ in pairs if id is not None}
    tabs = [number for number, text in lines if "\t" in text]
    plain = numbers and not tabs and 2 * len(found) <= len(lines)
    if numbers and tabs and not found:
        raise UserError(
            f"{path}, line {tabs[0]}: a tab, and no line begins with the id of a list, such as "
            f"{shortened(ids[0], 80)!r}: write an id, a tab and the words on each line, or lines "
            "without tabs."
        )
    if plain:
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
                f"{where}: there is no list {number - 1} for this reference: give lists and "
                "references of the same sentences."
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


def _number(text):
    """The digits of a number without zeros before them."""
    return text.lstrip("0") or text[:1]


def _keyed(text, written, numbers):
    """(the id that a line begins with, the words behind it); (None, "") without an id."""
    first, *rest = text.split(None, 1) or [""]
    before, _, behind = text.partition("\t")
    # An id may have blanks in it where a tab, or the line, ends it.
    for key, words in ((before.strip(), behind), (first, "".join(rest))):
        id = written.get(_number(key) if numbers else key)
        if id is not None:
            return id, words
    return None, ""
