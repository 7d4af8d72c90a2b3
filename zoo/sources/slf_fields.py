"""Fields NAME=VALUE of a line of HTK's standard lattice format (SLF).

A value ends at a blank, or stands in quotation marks, single or double. A backslash makes the next
character a part of the value; before three octal digits it stands for a byte (HTK Book, "Strings
and names").
"""

import re

from zoo.errors import UserError, shortened

# A field of SLF: a value in quotation marks, or one that ends at a blank that has no backslash.
_NAMED = re.compile(
    r"""\s*([^\s=]+)=("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?!")(?:\\.|[^\s\\])*)(?=\s|$)"""
)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
# Long names of fields, and the short ones.
_SHORT = {
    **{"UTTERANCE": "U", "NODES": "N", "LINKS": "L", "START": "S", "END": "E", "WORD": "W"},
    **{"time": "t", "acoustic": "a", "language": "l"},
}


def read(text: str, where: str) -> dict[str, str]:
    """Reads a line's fields, {short name: value}; long names mean the same as short ones."""
    fields: dict[str, str] = {}
    end = 0
    while match := _NAMED.match(text, end):
        name, value = match.groups()
        if _SHORT.get(name, name) in fields:
            raise UserError(f"{where}: the field {name}= comes twice: keep one.")
        fields[_SHORT.get(name, name)] = _unescaped(value, where)
        end = match.end()
    if rest := text[end:].split(maxsplit=1):
        if '="' in rest[0]:
            raise UserError(
                f"{where}: the value of {shortened(rest[0], 80)!r} has a quotation mark only at "
                "its start: write one at both ends."
            )
        raise UserError(
            f"{where}: {shortened(rest[0], 80)!r} is not a field NAME=VALUE of SLF: correct the "
            "line."
        )
    return fields


def _unescaped(value, where):
    """Returns a value without quotation marks around it and backslashes before characters."""
    if value[:1] in ('"', "'") and len(value) > 1 and value[-1] == value[0]:
        value = value[1:-1]
    if "\\" not in value:
        return value
    try:
        return _ESCAPED.sub(_byte, value.encode()).decode()
    except ValueError as error:
        raise UserError(
            f"{where}: {shortened(value, 80)!r} has escapes that are not UTF-8: correct them."
        ) from error


def _byte(match):
    """Returns the character after a backslash, or the byte of three octal digits."""
    escaped = match[1]
    return bytes([int(escaped, 8)]) if len(escaped) == 3 else escaped
