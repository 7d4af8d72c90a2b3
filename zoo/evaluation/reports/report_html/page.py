"""The document: head, style, script and sections, in one file that loads nothing."""

import base64
import hashlib
import importlib.resources
from typing import NamedTuple

from zoo.evaluation.reports.report_html.elements import text


class Section(NamedTuple):
    """A section of the page."""

    name: str  # its id in the page
    title: str
    about: str
    body: str


def document(title: str, lead: str, sections: list[Section]) -> str:
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
    """Reads a file of this folder."""
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
