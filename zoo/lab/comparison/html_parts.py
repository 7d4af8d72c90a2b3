"""Elements of the page: text, tables, paragraphs, and lines for parts that are left out."""

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from zoo.errors import printable


def escape(value: object) -> str:
    """Escapes a text for HTML; control characters are written as escapes."""
    return html.escape(printable(str(value)))


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


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], caption: str, text_columns: int = 1
) -> str:
    """Returns an HTML table of cells that are HTML; the first cell of a row is its header, and the
    first `text_columns` columns are aligned left."""
    kinds = [' class="left"' if column < text_columns else "" for column in range(len(header))]
    columns = [*zip(kinds, header, strict=True)]
    labels = [f'{kind} data-name="{escape(name)}"' for kind, name in columns]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in columns)
    body = "".join(_row(first, cells, labels[1:]) for first, *cells in rows)
    return (
        f'<p class="caption">{escape(caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table aria-label="{escape(caption)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(name, cells, labels):
    """Returns the HTML of a table's row; `labels` are the attributes of each <td>."""
    columns = "".join(f"<td{label}>{cell}</td>" for label, cell in zip(labels, cells, strict=True))
    return f'<tr><th scope="row" class="left">{name}</th>{columns}</tr>'


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
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    magnitude = f"{abs(value):,.{digits}f}"
    return f"−{magnitude}" if value < 0 and float(magnitude.replace(",", "")) else magnitude


def perplexity(value: float) -> str:
    """Formats a perplexity with two decimals below 100, one below 1,000, else none."""
    return number(value, 2 if value < 100 else 1 if value < 1000 else 0)


def probability(log_prob: float) -> str:
    """Formats the probability exp(log_prob): "0.31", "0.0042", "4.2e−7"."""
    value = math.exp(log_prob)
    if value >= 1e-3 or value == 0:
        return f"{value:.2g}"
    return f"{value:.1e}".replace("e-0", "e-").replace("-", "−")


def interval(ends: tuple[float, float], digits: int = 3) -> str:
    """Formats an interval as "[low, high]"; "–" if an end is NaN."""
    low, high = ends
    if math.isnan(low) or math.isnan(high):
        return "–"
    return f"[{number(low, digits)}, {number(high, digits)}]"
