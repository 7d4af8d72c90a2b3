"""Validations of a run while it trained, read from its metrics.jsonl."""

from typing import Any

from zoo import strict_json
from zoo.errors import UserError


def read(metrics: Any, fields: dict[str, Any]) -> list[dict]:
    """Reads the lines of a metrics.jsonl that belong to validations.

    The last line of a killed run may be incomplete; it is left out.

    Args:
      metrics: the path of the file.
      fields: {field: its type} that each of these lines must have.

    Raises:
      UserError: a field is missing or of another type.
    """
    found = []
    for number, line in enumerate(metrics.read_bytes().splitlines(), 1):
        values = strict_json.object_or_none(line) or {}
        if "validation_log_perplexity" in values:
            try:
                strict_json.check(values, fields)
            except ValueError as error:
                raise UserError(
                    f"{metrics}, line {number}, is not of a validation ({error}): take it out."
                ) from error
            found.append(values)
    return found
