"""Elements of the page: text, tables, paragraphs, and lines for parts that are left out."""

import base64
import hashlib
import html
import importlib.resources
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from zoo.errors import printable


def text(value: object) -> str:
    """Escapes a text for HTML; control characters are written as escapes."""
    return html.escape(printable(str(value)))


def missing(why: str, *names: str) -> str:
    before = f"<strong>{text(', '.join(names))}</strong>: " if names else ""
    return f'<p class="missing">{before}left out: {text(why)}</p>'


def all_missing(reasons: Iterable[tuple[str, str]]) -> str:
    """Returns the lines of runs that are left out, one for each reason."""
    names: dict[str, dict[str, None]] = {}
    for name, why in reasons:
        names.setdefault(why, {})[name] = None
    return "".join(missing(why, *of_why) for why, of_why in names.items())


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], caption: str, words: int = 1
) -> str:
    """Returns a table whose first column names the rows.

    It scrolls where it is too wide; on a phone each cell is a line that begins with its column.
    """
    kinds = [' class="left"' * (column < words) for column in range(len(header))]
    named = [f'{kind} data-name="{text(name)}"' for kind, name in zip(kinds, header, strict=True)]
    head = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>' for kind, name in zip(kinds, header, strict=True)
    )
    body = "".join(_row(first, cells, named[1:]) for first, *cells in rows)
    return (
        f'<p class="caption">{text(caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">'
        f'<table aria-label="{text(caption)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(first, cells, kinds):
    others = "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, cells, strict=True))
    return f'<tr><th scope="row" class="left">{first}</th>{others}</tr>'


def items(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


def more(summary: str, content: str) -> str:
    return f"<details><summary>{text(summary)}</summary>{content}</details>"


def json_data(value: Any) -> str:
    """Returns JSON that may stand in an element of HTML."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def number(value: float, digits: int = 3) -> str:
    """Formats a number; infinity and NaN as "∞" and "–"."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    shown = f"{abs(value):,.{digits}f}"
    return f"−{shown}" if value < 0 and float(shown.replace(",", "")) else shown


def perplexity(value: float) -> str:
    """Formats a perplexity with at most four digits that tell something."""
    return number(value, 2 if value < 100 else 1 if value < 1000 else 0)


def probability(log_prob: float) -> str:
    """Formats a probability: "0.31", "0.0042", "4.2e−7"."""
    value = math.exp(log_prob)
    return (
        f"{value:.2g}"
        if value >= 1e-3 or value == 0
        else f"{value:.1e}".replace("e-0", "e-").replace("-", "−")
    )


def interval(ends: tuple[float, float], digits: int = 3) -> str:
    """Formats an interval; "–" if its ends are not known."""
    low, high = ends
    if math.isnan(low) or math.isnan(high):
        return "–"
    return f"[{number(low, digits)}, {number(high, digits)}]"


# ---------- the document: head, style, script and sections, in one file that loads nothing


class Section(NamedTuple):
    name: str  # its id in the page
    title: str
    about: str
    body: str


def whole(title: str, lead: str, sections: list[Section]) -> str:
    """Returns the document.

    Its policy allows this style and this script, and nothing from anywhere else.
    """
    style, script = part("page.css"), part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = "".join(f'<a href="#{one.name}">{text(one.title)}</a>' for one in sections)
    bodies = "".join(
        f'<section id="{one.name}" aria-labelledby="{one.name}-title"><h2 id="{one.name}-title">'
        f"{text(one.title)}</h2><p>{text(one.about)}</p>{one.body}</section>\n"
        for one in sections
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{text(title)}</h1>{lead}</header>\n"
        f'<nav aria-label="Sections">{links}</nav>\n<main>\n{bodies}</main>\n'
        "<noscript><p>Without JavaScript the details of words are not shown.</p></noscript>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def part(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
