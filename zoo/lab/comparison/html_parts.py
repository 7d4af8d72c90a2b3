"""Elements of the page: lists, numbers, and lines for parts that are left out."""

import json
import math
from collections.abc import Iterable
from typing import Any

from zoo.lab.table import escape, typeset


def omission(reason: str, *names: str) -> str:
    """Returns a paragraph on the named parts that are left out, with the reason."""
    prefix = f"<strong>{escape(', '.join(names))}</strong>: " if names else ""
    return f'<p class="missing">{prefix}left out: {escape(reason)}</p>'


def omissions(reasons: Iterable[tuple[str, str]]) -> str:
    """Returns the paragraphs on left-out runs from (name, reason), one for each reason."""
    names_by_reason: dict[str, dict[str, None]] = {}
    for name, reason in reasons:
        names_by_reason.setdefault(reason, {})[name] = None
    return "".join(omission(reason, *names) for reason, names in names_by_reason.items())


def bullet_list(lines: Iterable[str]) -> str:
    """Returns an HTML list of lines that are HTML already."""
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


def collapsible(summary: str, content: str) -> str:
    """Returns HTML whose content, HTML, is shown when its summary, a text, is clicked."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def json_data(value: Any) -> str:
    """Returns a value as JSON text that is safe within a <script> element."""
    json_text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json_text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def number(value: float, digits: int = 3) -> str:
    """Formats a number with "−" and commas between thousands; infinity and NaN as "∞" and "–"."""
    return typeset(value, f"z,.{digits}f")


def probability(log_prob: float) -> str:
    """Formats the probability exp(log_prob): "0.31", "0.0042", "4.2e−7"."""
    value = math.exp(log_prob)
    if value >= 1e-3 or value == 0:
        return f"{value:.2g}"
    return f"{value:.1e}".replace("e-0", "e-").replace("-", "−")
