"""Writes the pages of the site as files: docs/, pages from outside docs/, and the API reference.

python docs/site/pages.py writes build/pages, Markdown that mkdocs.yml reads. Other builders can
read it: Zensical builds the same pages by mkdocs.yml. python docs/site/pages.py --check SITE fails
if a built page loads something from the network.

Links in the repository are relative to its files; here they are turned into the site's. Equations
are fences of the language `math`, which the repository host renders too; here they are MathML.
"""

import dataclasses
import importlib
import inspect
import json
import os
import pathlib
import re
import shutil
import sys

import yaml
from latex2mathml.converter import convert

from zoo import heads

ROOT = pathlib.Path(__file__).parents[2]
# {file of the repository outside docs/: its place in the site}
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/BENCHMARKS.md": "benchmarks.md",
    "records/README.md": "records.md",
    "Dockerfile": "Dockerfile",
    "examples/treebank.ipynb": "treebank.md",
}
INSIDE = {place: file for file, place in OUTSIDE.items()}
LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./-]+)(#[\w-]+)?\)")
EQUATION = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REFERENCE = re.compile(r"reference/(.+)\.md")
LOADED = re.compile(r'<(?:script|img|iframe)[^>]* src="?http|<link[^>]* href="?http')
DRAWING = re.compile(r"!\[[^]]*\]\([^)]*pictures/model\.svg\)")


def write(folder):
    """Writes the pages and their pictures into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    code = shutil.ignore_patterns("*.py", "requirements.txt", "__pycache__")
    shutil.copytree(ROOT / "docs", folder, ignore=code)
    for name, place in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text = notebook(text) if name.endswith(".ipynb") else text
        (folder / place).write_text(text, encoding="utf-8")
    (folder / "reference").mkdir()
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    documented = set()  # `zoo` comes last, and refers to the names of its packages
    for place in sorted(_places(navigation), key=len, reverse=True):
        if match := REFERENCE.fullmatch(place):
            (folder / place).write_text(reference(match[1], documented), encoding="utf-8")
    for file in folder.rglob("*.md"):
        place = file.relative_to(folder).as_posix()
        file.write_text(render_page(file.read_text(encoding="utf-8"), place), encoding="utf-8")


def equation(match):
    """Renders an equation."""
    return f'<div class="equation">{convert(match[1].strip(), display="block")}</div>'


def notebook(text):
    """Returns a notebook as Markdown: code and its texts in fences, pictures within the page."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", [])})
            if picture := "".join(data.get("image/png", [])).replace("\n", ""):
                heading = next(part for part in reversed(parts) if part.startswith("#"))
                parts.append(f"![{heading.strip('# ')}](data:image/png;base64,{picture})")
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts)


def _places(nav):
    if isinstance(nav, str):
        return {nav}
    items = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(_places, items))


def reference(package, documented):
    """Returns the page of a package: its docstring and its names, each documented on one page."""
    module = importlib.import_module(package)
    options = (
        "    options: {show_root_heading: false, show_root_toc_entry: false, members: false}\n"
    )
    text = f"# {package}\n\n::: {package}\n{options}"
    for name in sorted(public(module), key=str.lower):
        member = getattr(module, name)
        place = f"{member.__module__}.{name}" if callable(member) else f"{package}.{name}"
        if place in documented:
            text += f"\n## {name}\n\nSee [`{place}`][{place}].\n"
        else:
            text += f"\n::: {place}\n    options: {{heading: {name}}}\n"
        documented.add(place)
    return text


def public(module):
    """Returns the names that a module exports, or else defines."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    return [name for name in names if not name.startswith("_")]


def render_page(markdown, place):
    """Turns links of the repository into the site's, renders equations and the drawing, and adds
    the parameters of a head."""
    origin = (ROOT / INSIDE[place] if place in INSIDE else ROOT / "docs" / place).parent

    def link(match):
        path = os.path.relpath(os.path.normpath(origin / match[2]), ROOT)
        target = OUTSIDE.get(path) or (path[5:] if path.startswith("docs/") else None)
        if target is None:
            sys.exit(f"{place}: the link {match[2]} leads to no page of the site.")
        text = title(path) if match[1] == os.path.basename(path) else match[1]
        return f"[{text}]({os.path.relpath(target, os.path.dirname(place))}{match[3] or ''})"

    # The drawing stands within its page, so that it follows the page's colours.
    drawing = (ROOT / "docs/pictures/model.svg").read_text(encoding="utf-8")
    markdown = DRAWING.sub(lambda _: f"<p>{drawing}</p>", LINK.sub(link, markdown))
    markdown = EQUATION.sub(equation, markdown)
    if place.startswith("heads/"):
        markdown += parameters(getattr(heads, markdown.split()[1]))
    return markdown


def title(path):
    """Returns the title of a page up to its colon, in place of a link's file name."""
    first = (ROOT / path).read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ").partition(":")[0]


def parameters(head):
    """Returns a table of the fields of a head, with the docstrings of its classes."""
    meanings = {}
    for base in reversed(head.__mro__):
        meanings |= dict(_attributes(base.__dict__.get("__doc__") or ""))
    rows = "".join(
        f"| `{field.name}` | {_default(field)} | {_cell(meanings.get(field.name, ''))} |\n"
        for field in dataclasses.fields(head)
    )
    return f"\n## Parameters\n\n| field | default | meaning |\n|---|---|---|\n{rows}"


def _attributes(docstring):
    """Yields (name, meaning) of the section "Attributes" of a docstring."""
    _, _, section = inspect.cleandoc(docstring).partition("Attributes:\n")
    section = re.split(r"\n(?=\S)", section)[0]
    for item in re.split(r"^  (?=\w)", section, flags=re.MULTILINE)[1:]:
        name, _, meaning = item.partition(":")
        yield name, " ".join(meaning.split())


def _default(field):
    return "required" if field.default is dataclasses.MISSING else f"`{field.default!r}`"


def _cell(text):
    """Escapes Markdown outside code, and the bars of tables."""
    escaped = {"|": r"\|", "*": r"\*", "<": "&lt;"}
    return re.sub(r"`[^`|]*`|[|*<]", lambda match: escaped.get(match[0], match[0]), text)


def check(site):
    """Ends with an error if a page of a built site loads something from the network."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if match := LOADED.search(text):
            sys.exit(f"{path} loads {text[match.start() : match.end() + 60]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(pathlib.Path(sys.argv[2]))
    else:
        write(ROOT / "build" / "pages")
