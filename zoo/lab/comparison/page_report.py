"""The page of `zoo compare --page`: reads the runs, makes the sections and writes the page."""

import base64
import hashlib
import importlib.resources
import pathlib
import string
import tomllib
from collections.abc import Callable, Iterable, Sequence

from zoo.lab.comparison import html_parts, page_differences, page_figures, page_text, translations
from zoo.lab.comparison.comparison import Comparison, read_each
from zoo.lab.evaluation import records
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.lab.runs.workdir import Workdir
from zoo.lab.table import escape


def write_page(
    paths: list[str],
    file: str | pathlib.Path = "report.html",
    split: str | None = None,
    text: str | None = None,
    sentences: int = 20,
    labels: Sequence[str] = (),
    load: Callable[[str], Run] = Run.load,
):
    """Writes the page that compares runs into a file; `text` is a file in place of a split."""
    output_files.check(file, "the report")
    content = build_page(load_comparison(paths, labels, load), split, text, sentences)
    output_files.write_lines(file, [content], "the report")
    output_files.show(f"wrote {file}")


def load_comparison(
    paths: Iterable[str], labels: Sequence[str] = (), load: Callable[[str], Run] = Run.load
) -> Comparison:
    """Makes the comparison of a page's runs, judged or not; raises UserError for a path without a
    recipe or record."""
    comparison = Comparison.from_paths(paths, labels, load=load)
    for path in comparison.paths.values():
        if records.is_record(path):
            records.record_of(path)
        else:
            Workdir(path).experiment()
    return comparison


def build_page(
    comparison: Comparison, split: str | None = None, text: str | None = None, sentences: int = 20
) -> str:
    """Builds the page as HTML, with the sections for which the runs have something to show."""
    recipes = comparison.groups
    firsts = [recipe.runs[0] for recipe in recipes]
    has_seeds = len(firsts) < len(comparison.paths)
    translators = [name for name in firsts if comparison.is_translator(name)]
    texts, reasons = _score_texts(comparison, firsts, split, text, sentences)
    bodies = {
        "passports": page_figures.figures_section(comparison),
        "curves": page_figures.curves_section(comparison),
        "bands": page_figures.bands_section(comparison),
        "text": page_text.text_section(texts, reasons),
        "judgements": page_figures.judgements_section(comparison),
        "translations": translations.translations_section(comparison) if translators else "",
        "attention": page_differences.attention_section(comparison, translators, split),
        "differences": page_differences.differences_section(comparison) if len(recipes) > 1 else "",
    }
    sections = [
        (name, part["title"], part["about"] + (part.get("seeds", "") if has_seeds else ""))
        for name, part in tomllib.loads(read_resource("page_sections.toml")).items()
        if bodies[name]
    ]
    paths = comparison.paths.items()
    lead = html_parts.bullet_list(
        f"<strong>{escape(name)}</strong>: {escape(path)}" for name, path in paths
    )
    return _assemble_page(_title(recipes), lead, sections, bodies)


def _title(recipes):
    """Returns the title of the page, which names up to four recipes."""
    names = [recipe.name for recipe in recipes]
    remainder = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"Report: {'; '.join(names[:4])}{remainder}"


def _score_texts(comparison, firsts, split, text, sentences):
    """Scores a text under the first run of each recipe: (texts, {run: message of UserError});
    raises the error if `split` or `text` was asked for."""
    runs, missing = comparison.available_runs

    def score(name):
        run_id = [*comparison.paths].index(name)
        return page_text.score_text(name, run_id, runs[name], split, text, sentences)

    available = {name: name for name in firsts if name in runs}
    reasons = {name: missing[name] for name in firsts if name in missing}
    if split or text:  # the user asked for it
        return [*map(score, available)], reasons
    texts, errors = read_each(available, score)
    return [*texts.values()], reasons | errors


# ---------- the document: head, style, script and sections, in one file that loads nothing


def _assemble_page(title, lead, sections, bodies):
    """Puts sections (id, heading, about), and {id: HTML}, into page.html, whose policy allows its
    own script alone."""
    script = read_resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return string.Template(read_resource("page.html")).substitute(
        digest=digest,
        title=escape(title),
        style=read_resource("page.css"),
        lead=lead,
        links="".join(f'<a href="#{name}">{escape(head)}</a>' for name, head, _ in sections),
        sections="".join(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">'
            f"{escape(head)}</h2><p>{escape(about)}</p>{bodies[name]}</section>\n"
            for name, head, about in sections
        ),
        script=script,
    )


def read_resource(name: str) -> str:
    """Reads a file of this package, such as page.css."""
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
