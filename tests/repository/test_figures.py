"""Figures of results in running text are cells of tables, which `make tables` fills."""

import re

import pytest

from records import tables
from zoo.errors import UserError

# What no figure of results is searched in.
LEFT_OUT = (
    r"<!-- table .*?<!-- end of table -->",
    r"<!-- = [^>]* -->.*?<!-- -->",
    r"^```.*?^```",
    r"^    [^\n]*$",  # commands
    r"`[^`]*`",
    r"\]\([^)]*\)",
    # what was expected before the runs, in a section of its own or in a sentence
    r"^## Expected\n.*?(?=^## |\Z)",
    r"Expected\b(?:(?!Found\b|\n\n(?!- )).)*",
)
FIGURE = r"-?\d+\.\d+|\d+(?= (?:%|(?:points|BLEU|nats)\b))"
# Settings, sizes and versions, which no run measures.
SETTINGS = (
    r"(?:Python|jax|UD French|PARSEME|Apache(?: License)?|section) r?\d[\d.]*(?: to \d[\d.]*)?",
    r"95 % (?:interval|of)",
    r"(?:rates?(?: of)?|dropout(?: x)?|temperature|p <|Adam at|those that are) \d\.\d+",
    r"\d\.\d+ (?:times its rates|times the rates|of inputs|between the layers|of the last states)",
    r"\d\.\d+ of the recurrent weights",
)
# Further settings, and what papers report: page by page.
PHRASES = {
    "french.md": (
        "4.17 nats on its own training text, and 6.07 and 6.15 on the tests",
        "the paper's best log-linear model (5.08 and 5.07)",
    ),
    "penn_treebank.md": (
        "dropout 0.05 of words",
        "five (7.5, 15, 22, 30 and 45; by Adam, for the CNN softmax, from 0.0005 to 0.008)",
        "Its rates 0.004 and 0.008",
        "and 0.016 is worse",
        "(2018) have 58.8 with 24 million parameters and 750 epochs, 57.3 after fine-tuning, and "
        "52.8 with a cache",
        "the 13.6 nats of a uniform distribution",
    ),
    "texts.md": ("the powers 0, 0.5 and 1",),
    "translations.md": (
        "baseline of 19.6 BLEU they report 20.0 to 20.2 with WE, 20.1 to 20.3 with CWE, and "
        "19.8 to 20.0 with CWE-CWE",
        "The paper's gain over a system of bilingual n-grams is 0.4 to 0.6 with WE",
    ),
}


def typed_figures(text, phrases=()):
    """Yields each typed figure of a page with the words around it."""
    for pattern in LEFT_OUT:
        text = re.sub(pattern, "", text, flags=re.DOTALL | re.MULTILINE)
    allowed = "|".join([*SETTINGS, *map(re.escape, phrases)])
    text = re.sub(allowed, "", " ".join(text.split()))
    for match in re.finditer(FIGURE, text):
        yield text[max(0, match.start() - 40) : match.end() + 40]


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_no_figure_of_results_is_typed(page):
    text, phrases = page.read_text(encoding="utf-8"), PHRASES.get(page.name, ())
    assert not [*typed_figures(text, phrases)], "name a cell: <!-- = TABLE; ROW; COLUMN --><!-- -->"
    assert not [phrase for phrase in phrases if phrase not in " ".join(text.split())]
    # At the beginning of a line a comment would end the paragraph.
    assert not re.search(r"^<!-- =", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The gain is 0.144 nats.", 1),
        ("It has 92 % right.", 1),
        ("It gains 2 to 3 points, in 20 runs, with 300 BLEUs.", 1),
        ("Found: -1.5 [-1.6, -1.4].", 3),
        ("The gain is <!-- = a; b; c -->0.144 [0.139, 0.150]<!-- --> nats.", 0),
        ("Expected: 0.5.\n\nThe gain is 0.6.", 1),
        ("Expected:\n\n- at least 0.5;\n- or 0.6.\n\nFound: it is.", 0),
        ("Expected: 0.5. Found: 0.6.", 1),
        ("## Expected\n\nIt is 0.5.\n\n## Found\n\nIt is 0.6.", 1),
        ("With dropout 0.5, `--beam 0.5`, at a rate of 0.5.", 0),
        ("<!-- table a -->\n| 0.5 |\n<!-- end of table -->\n\n    python x.py 0.5", 0),
    ],
)
def test_a_typed_figure_is_seen(text, count):
    assert len([*typed_figures(text)]) == count


TABLE = {
    "a": "<!-- table a -->\n| head | text | nats |\n| --- | --- | --- |\n| softmax | one | 1.25 |\n"
    "| softmax | two |  |\n| softmax, tied | one | 2 [1, 3], p < 0.1 |\n\nFrom records."
}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("a; softmax | one; nats", "1.25"),
        ("a; softmax | two; nats", ""),
        ("a; softmax,\ntied; nats", "2 [1, 3], p < 0.1"),
        ("a; softmax, tied; text", "one"),
    ],
)
def test_a_figure_is_the_cell_that_its_comment_names(reference, expected):
    assert tables.cell(TABLE, reference) == expected


@pytest.mark.parametrize(
    "reference", ["a; softmax; nats", "a; soft; nats", "a; softmax | one; p", "b; softmax; nats"]
)
def test_a_figure_of_no_cell_is_refused(reference):
    with pytest.raises(UserError, match="no cell, or several, of the tables fit"):
        tables.cell(TABLE, reference)


def test_a_figure_follows_its_table(monkeypatch):
    monkeypatch.setattr(
        tables, "TABLES", {"a": lambda: "| head | nats |\n| --- | --- |\n| x | 2 |\n"}
    )
    pages = ["<!-- table a -->\n<!-- end of table -->", "is <!-- = a; x; nats -->1<!-- --> nats"]
    assert tables.with_tables(pages)[1] == "is <!-- = a; x; nats -->2<!-- --> nats"
