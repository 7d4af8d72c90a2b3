"""Rows of JSON: a sequence of objects, on a line each or not, or one list of objects."""

import json
import pathlib
import re
from collections.abc import Iterator

from zoo import strict_json
from zoo.errors import UserError

_BLANK = re.compile(r"[ \t\r\n]*")


def rows(text: str, path: pathlib.Path) -> tuple[list[str], list[dict]]:
    """Returns (the names of all objects, the objects); an object may lack names of others."""
    values = list(_values(text, path))
    if len(values) == 1 and isinstance(values[0], list):
        (values,) = values
    for number, row in enumerate(values, 1):
        if not isinstance(row, dict):
            raise UserError(
                f"{path}, value {number}: {_KINDS.get(type(row), 'a number')} where an object with "
                'the text should be: write {"text": "..."}, or set data.column.'
            )
    return [*dict.fromkeys(name for row in values for name in row)], values


_KINDS = {str: "a string", list: "a list", bool: "true or false", type(None): "null"}


def _after_blank(text: str, begin: int) -> int:
    """Returns the position after the blanks that begin at a position."""
    match = _BLANK.match(text, begin)
    return match.end() if match else begin


def _values(text, path) -> Iterator:
    """Yields the JSON values of a text."""
    decoder = json.JSONDecoder(parse_int=strict_json.whole_number)
    begin = _after_blank(text, 0)
    while begin < len(text):
        try:
            value, begin = decoder.raw_decode(text, begin)
        except RecursionError as error:
            line = text.count("\n", 0, begin) + 1
            raise UserError(
                f"{path}, line {line}: JSON that is nested too deeply: correct it."
            ) from error
        except ValueError as error:  # also for integers that are too long for Python to parse
            line = text.count("\n", 0, getattr(error, "pos", begin)) + 1
            what = getattr(error, "msg", error)
            raise UserError(f"{path}, line {line}: not JSON ({what}): correct it.") from error
        yield value
        begin = _after_blank(text, begin)
