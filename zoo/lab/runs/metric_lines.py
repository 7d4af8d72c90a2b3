"""Lines of metrics.jsonl, to which a run appends while it trains."""

from typing import Any

from zoo.base import strict_json

_LINE_START = b'{"step": '  # of every line, as a run writes it


def parse(line: bytes, min_step: int = 0) -> dict:
    """Parses a line of metrics; raises ValueError for no JSON or a step below `min_step`."""
    values = strict_json.loads(line.decode())
    check_step(values, min_step)
    return values


def check_step(values: Any, min_step: int):
    """Raises ValueError unless the values are a dict whose step is at least `min_step`."""
    strict_json.check_least(strict_json.parse({"step": int}, values)["step"], min_step, "step")


def is_cut(line: bytes) -> bool:
    """Whether the text after a file's last line break is empty or the beginning of a line of
    metrics that a kill cut."""
    begins = _LINE_START.startswith(line[: len(_LINE_START)])
    return begins and strict_json.object_or_none(line) is None
