"""The page of `zoo compare --page`: reads the runs, makes the sections and writes the page."""

import pathlib
from collections.abc import Callable, Sequence

from zoo.errors import UserError
from zoo.evaluation.reports.report_html import (
    attention,
    bands,
    curves,
    differences,
    elements,
    judgements,
    page,
    passports,
    subjects,
    surprisal_text,
    text_predictions,
    translations,
)
from zoo.evaluation.reports.report_html.page import Section
from zoo.evaluation.run import Run
from zoo.runs import output_files

_TEXT = (
    "The stronger the colour and the thicker the bar below a word, the less the model expected it "
    "(-log p, nats). Its details have the five best words in its place and their probabilities. "
    "For a log-linear head they also have the features that spoke for the word (above 0) and "
    "against it (below 0): log p(x | h) = log b(x) + the features' nats - log Z."
)
_FIRST = " Of several seeds of a recipe the first is shown."


def report(
    paths: list[str],
    file: str | pathlib.Path = "report.html",
    split: str | None = None,
    text: str | None = None,
    sentences: int = 20,
    labels: Sequence[str] = (),
    load: Callable[[str], Run] = Run.load,
    log=output_files.show,
):
    """Writes the page of runs."""
    output_files.check(file, "the report")
    runs = subjects.read(paths, load)
    content = document(runs, split, text, sentences, labels)
    output_files.write_lines(file, [content], "the report")
    log(f"wrote {file}")


def document(
    runs: list[subjects.Subject],
    split: str | None = None,
    text: str | None = None,
    sentences: int = 20,
    labels: Sequence[str] = (),
) -> str:
    """Returns the page of runs; see `report`."""
    runs = subjects.labelled(runs, labels)
    recipes = subjects.recipes_of(runs, labels)
    firsts = [recipe.subjects[0] for recipe in recipes]
    shown, left_out = _predictions(firsts, split, text, sentences)
    sections = [
        Section(
            "passports",
            "What was judged",
            "Each figure with its conditions. A figure means something only with these.",
            passports.section(recipes),
        ),
        Section(
            "curves", "Learning curves", "Loss against the training step.", curves.section(recipes)
        ),
        Section(
            "bands",
            "Frequent and rare words",
            "The same words of text, by how often they occurred in training.",
            bands.section(recipes),
        ),
        Section(
            "text",
            "A text",
            _TEXT + _FIRST * (len(firsts) < len(runs)),
            surprisal_text.section(shown, left_out),
        ),
        Section(
            "judgements",
            "Agreement and minimal pairs",
            "How often a correct sentence is more probable than the same with an error.",
            judgements.section(recipes),
        ),
        *(_of_translations(recipes, firsts, split) if subjects.translate(runs) else ()),
    ]
    if len(recipes) > 1:
        about = (
            "The first recipe against each other one, in nats: the totals, and the words that "
            "differ most. One nat is a probability 2.7 times as high."
        )
        about += " Words are of the first seed of each." * (len(firsts) < len(runs))
        side = differences.section(recipes)
        sections.append(Section("differences", "Side by side", about, side))
    paths = elements.items(
        f"<strong>{elements.text(one.name)}</strong>: {elements.text(one.path)}" for one in runs
    )
    filled = [section for section in sections if section.body]
    return page.document(subjects.title(recipes), paths, filled)


def _of_translations(recipes, firsts, split):
    yield Section(
        "translations",
        "Translations",
        "BLEU and chrF, in percent, as far as python -m zoo translate --bleu has kept them.",
        translations.section(recipes),
    )
    yield Section(
        "attention",
        "Attention",
        "Rows are the words of a translation by the model, columns the source's words; the "
        "area of a square is the weight.",
        _attention(firsts, split),
    )


def _predictions(runs, split, text, sentences):
    """Returns (the text with the predictions of each run that has any, {run: why not})."""
    shown, left_out = [], {}
    for one in runs:
        try:
            shown.append(text_predictions.predict(one, split, text, sentences))
        except UserError as error:
            if one.run is not None and (split or text):  # the user asked for it
                raise
            left_out[one.name] = str(error)
    return shown, left_out


def _attention(runs, split):
    """Draws the attention of translators, and tells which cannot be read."""
    parts, left_out = [], []
    for one in runs:
        if not subjects.translate([one]):
            continue
        if one.run is None:
            left_out.append((one.name, one.no_run))
            continue
        if not attention.has_attention(one.run):
            continue
        try:
            body = attention.section(one, one.text_name(split))
            parts.append(f"<h3>{elements.text(one.name)}</h3>{body}")
        except UserError as error:
            left_out.append((one.name, str(error)))
    return "".join(parts) + elements.all_missing(left_out)
