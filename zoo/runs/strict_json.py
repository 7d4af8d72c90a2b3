"""JSON that every reader takes: it knows neither inf nor nan."""

import json
import math
from typing import Any


def dumps(value: Any, **options) -> str:
    """The value as JSON, what is not finite as the strings that `float` reads."""
    return json.dumps(_finite(value), allow_nan=False, **options)


def read_object(text: str | bytes) -> dict | None:
    """The object that a text holds; None if it holds none, such as a line that a kill cut short."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
