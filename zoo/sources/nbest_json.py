"""N-best lists as lines of JSON, as written by ESPnet and in the HyPoradise data.

A line is a list, {"id": ..., "hypotheses": [...], "reference": ...}, or one hypothesis, {"id": ...,
"text": ..., "score": ..., other numbers are features}. The hypotheses of a list are texts or such
objects. Other names that are read: "utt", "utt_id" and "name" for "id"; "nbest" and "input", or a
list as "output", for "hypotheses"; "output" and "ref" for "reference"; "hyp", "hypothesis" and
"rec_text" for "text". Lists of numbers of the same length as "hypotheses" are features, too. The id
of a list without one is its line number.
"""

import itertools
import json
from collections.abc import Iterable, Iterator

from zoo import strict_json
from zoo.errors import UserError, shortened
from zoo.sources import files
from zoo.sources.hypotheses import Hypothesis, NBestList, number_of

IDS = ("id", "utt", "utt_id", "name")
LISTS = ("hypotheses", "nbest", "input", "output")
TEXTS = ("text", "hyp", "hypothesis", "rec_text")
REFERENCES = ("reference", "ref", "output")


def read(lines: Iterable[tuple[int, str]], path: str) -> Iterator[NBestList]:
    """Reads the lists of numbered lines.

    A file may also be one JSON list of such objects, as in HyPoradise: it is read whole and may
    have at most `files.LONGEST_LIST` bytes.
    """
    for _, group in itertools.groupby(_entries(lines, path), key=lambda entry: entry[0]):
        yield _joined([nbest_list for _, nbest_list in group])


def _joined(lists):
    """Joins consecutive lists with one id, as of hypotheses on a line each."""
    references = [one.reference for one in lists if one.reference is not None]
    hypotheses = [hypothesis for one in lists for hypothesis in one.hypotheses]
    return NBestList(lists[0].id, hypotheses, references[0] if references else None)


def _entries(lines, path):
    """Yields (the key of a list, the list) for each object; equal keys belong together."""
    for number, where, value in _objects(lines, path):
        if not isinstance(value, dict):
            raise UserError(f'{where}: not an object: write {{"id": ..., "hypotheses": [...]}}.')
        nbest_list, whole = _list_of(value, number, where)
        # Two whole lists with one id have different keys: the second is refused.
        yield (nbest_list.id, number if whole else None), nbest_list


def _objects(lines, path):
    """Yields (number, place, value) for each line of JSON, or for each item of one list."""
    lines = itertools.dropwhile(lambda line: not line[1].strip(), lines)
    number, first = next(lines)
    if first.lstrip().startswith("["):
        whole = _parsed(_joined_lines(first, lines, path), f"{path}, line {number}")
        yield from ((n, f"{path}, item {n}", value) for n, value in enumerate(whole, 1))
        return
    for at, text in itertools.chain([(number, first)], lines):
        if text.strip():
            where = f"{path}, line {at}"
            yield at, where, _parsed(text, where)


def _joined_lines(first, others, path):
    """Joins all lines; raises UserError if the list is too long."""
    texts, size = [first], len(first)
    for _, text in others:
        texts.append(text)
        size += len(text) + 1
        if size > files.LONGEST_LIST:
            raise UserError(
                f"{path} is one JSON list of more than {files.LONGEST_LIST:,} characters: write "
                "its items a line each, as jq -c '.[]' does."
            )
    return "\n".join(texts)


def _parsed(text, where):
    try:
        return strict_json.loads(text, finite=False)  # `number_of` names infinite numbers
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}): correct it.") from error


def _list_of(value, number, where):
    """Returns (the list of an object, whether it is whole and not a single hypothesis)."""
    id = next((value[name] for name in IDS if name in value), number)
    if not isinstance(id, str | int) or isinstance(id, bool) or not str(id).strip():
        raise UserError(
            f"{where}: the id is {shortened(json.dumps(id), 80)}: write a string or a whole number."
        )
    id = str(id)
    key = next((name for name in LISTS if isinstance(value.get(name), list)), None)
    if key is None:
        return NBestList(id, [_hypothesis(value, number, where)], _reference(value)), False
    items = value[key]
    if not items:
        raise UserError(f"{where}: the list {id!r} has no hypotheses: leave it out.")
    columns = {
        name: column
        for name, column in value.items()
        if name != key and isinstance(column, list) and len(column) == len(items)
    }
    hypotheses = []
    for position, item in enumerate(items):
        own = {"text": item} if isinstance(item, str) else item
        if not isinstance(own, dict):
            raise UserError(
                f"{where}: hypothesis {position + 1} is neither text nor an object: write "
                "one of the two."
            )
        own = {**own, **{name: column[position] for name, column in columns.items()}}
        hypotheses.append(_hypothesis(own, number, where))
    return NBestList(id, hypotheses, _reference(value)), True


def _reference(value):
    return next((value[name] for name in REFERENCES if isinstance(value.get(name), str)), None)


def _hypothesis(value, number, where):
    text = next((value[name] for name in TEXTS if isinstance(value.get(name), str)), None)
    if text is None:
        raise UserError(f'{where}: a hypothesis has no text: write {{"text": "..."}}.')
    score = value.get("score")
    return Hypothesis(
        number,
        " ".join(text.split()),
        {
            name: number_of(item, where, f"the feature {name!r}")
            for name, item in value.items()
            if name != "score" and name not in IDS and not isinstance(item, bool)
            if isinstance(item, int | float)
        },
        None if score is None else number_of(score, where, "the score"),
    )
