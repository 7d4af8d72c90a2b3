"""The page of `zoo compare --page`: reads the runs, makes the sections and writes the page."""

import base64
import hashlib
import importlib.resources
import pathlib
from collections.abc import Callable, Iterable, Sequence

from zoo.lab.comparison import html_parts, page_differences, page_figures, page_text, translations
from zoo.lab.comparison.comparison import Comparison, read_each
from zoo.lab.evaluation import records
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.lab.runs.workdir import Workdir
from zoo.lab.table import escape

# {section: (title, what it shows)}
_SECTIONS = {
    "passports": (
        "What was judged",
        "Each figure with its conditions. A figure means something only with these.",
    ),
    "curves": ("Learning curves", "Loss against the training step."),
    "bands": (
        "Frequent and rare words",
        "The same words of text, by how often they occurred in training.",
    ),
    "text": (
        "A text",
        "The stronger the colour and the thicker the bar below a word, the less the model expected "
        "it (-log p, nats). Its details have the five best words in its place and their "
        "probabilities. For a log-linear head they also have the features that spoke for the word "
        "(above 0) and against it (below 0): log p(x | h) = log b(x) + the features' nats - log Z.",
    ),
    "judgements": (
        "Agreement and minimal pairs",
        "How often a correct sentence is more probable than the same with an error.",
    ),
    "translations": (
        "Translations",
        "BLEU and chrF, in percent, as far as python -m zoo translate --bleu has kept them.",
    ),
    "attention": (
        "Attention",
        "Rows are the words of a translation by the model, columns the source's words; the "
        "area of a square is the weight.",
    ),
    "differences": (
        "Side by side",
        "The first recipe against each other one, in nats: the totals, and the words that "
        "differ most. One nat is a probability 2.7 times as high.",
    ),
}
# What is added where a recipe has several seeds.
_SEED_NOTES = {
    "text": " Of several seeds of a recipe the first is shown.",
    "differences": " Words are of the first seed of each.",
}


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
        (name, head, about + (_SEED_NOTES.get(name, "") if has_seeds else ""), bodies[name])
        for name, (head, about) in _SECTIONS.items()
        if bodies[name]
    ]
    paths = comparison.paths.items()
    lead = html_parts.bullet_list(
        f"<strong>{escape(name)}</strong>: {escape(path)}" for name, path in paths
    )
    return _assemble_page(_title(recipes), lead, sections)


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


def _assemble_page(title, lead, sections):
    """Puts sections (id, heading, about, HTML) into an HTML document, whose policy allows its own
    script alone."""
    style, script = read_resource("page.css"), read_resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = "".join(f'<a href="#{name}">{escape(head)}</a>' for name, head, _, _ in sections)
    bodies = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(head)}'
        f"</h2><p>{escape(about)}</p>{body}</section>\n"
        for name, head, about, body in sections
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>{lead}</header>\n"
        f'<nav aria-label="Sections">{links}</nav>\n<main>\n{bodies}</main>\n'
        "<noscript><p>Without JavaScript the details of words are not shown.</p></noscript>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def read_resource(name: str) -> str:
    """Reads a file of this package, such as page.css."""
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
