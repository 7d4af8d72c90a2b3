"""Lines of metrics.jsonl, to which a run appends while it trains."""

from typing import Any

from zoo.base import strict_json

_BEGIN = b'{"step": '  # of every line, as a run writes it


def parse(line: bytes, least: int = 0) -> dict:
    """Parses a line; raises ValueError unless it is an object whose step is at least `least`."""
    values = strict_json.loads(line.decode())
    check_step(values, least)
    return values


def check_step(values: Any, least: int):
    """Raises ValueError unless values are an object whose step is at least `least`."""
    strict_json.check(values, {"step": int})
    if values["step"] < least:
        raise ValueError(f"step is {values['step']}, where at least {least} should be")


def is_cut(line: bytes) -> bool:
    """Whether the text behind the last line end is empty, or a line that a kill cut short."""
    begins = _BEGIN.startswith(line[: len(_BEGIN)])
    return begins and strict_json.object_or_none(line) is None
