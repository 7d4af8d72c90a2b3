"""References of n-best lists: what was said, or how it should be translated."""

from collections.abc import Sequence

from zoo.errors import UserError, named, shortened
from zoo.sources import streams


def read_references(path: str, ids: Sequence[str], keyed: bool = False) -> dict[str, str]:
    """{id: words} of the lists of a file, each with its reference.

    A file whose first line has a tab has `id`, a tab and the words on each line. Otherwise, where
    all ids are whole numbers, line n + 1 belongs to the list n, as Moses and Joshua count; where
    not, line by line to the lists in their order.

    Args:
      path: the file.
      ids: of the lists, in their order.
      keyed: the first word of each line is the id, as Kaldi has it.

    Raises:
      UserError: a list has no reference, or a reference no list; file and line are named.
    """
    lines = list(streams.read_lines(path))
    references: dict[str, str] = {}
    at: dict[str, int] = {}
    if not keyed and "\t" not in lines[0][1]:
        numbers = all(id.isascii() and id.isdigit() for id in ids)
        keys = [str(n) for n in range(len(lines))] if numbers else [*ids]
        if numbers:
            keys = _as_written(keys, ids)
        keys += [f"line {n}" for n in range(len(keys) + 1, len(lines) + 1)]
        pairs = [(key, text) for key, (_, text) in zip(keys, lines, strict=False)]
    else:
        pairs = [_keyed(line, number, path, keyed) for number, line in lines]
    for (number, _), (key, text) in zip(lines, pairs, strict=True):
        if key in references:
            raise UserError(f"{path}, line {number}: the id {key!r} is there twice: keep one.")
        references[key], at[key] = " ".join(text.split()), number
    known = {*ids}
    for key in references:
        if key not in known:
            raise UserError(
                f"{path}, line {at[key]}: the reference has no list: give lists and references of "
                "the same sentences."
            )
    missing = [id for id in ids if id not in references]
    if missing:
        raise UserError(
            f"{path} has no reference for {len(missing):,} of {len(ids):,} lists: {named(missing)}."
        )
    return {id: references[id] for id in ids}


def _as_written(keys, ids):
    """Numbers as the lists write them: 007 for 7."""
    written = {str(int(id)): id for id in ids}
    return [written.get(key, key) for key in keys]


def _keyed(line, number, path, keyed):
    """(id, words) of a line."""
    key, tab, text = line.partition(" ") if keyed else line.partition("\t")
    if not key.strip() or (not tab and not keyed):
        raise UserError(
            f"{path}, line {number}: {shortened(line, 80)!r} is no reference: write an id, "
            f"{'a blank' if keyed else 'a tab'} and the words."
        )
    return key.strip(), text
