"""Tables are aligned for people, and read by pandas and R, whatever words are in them."""

import math

import numpy as np
import pytest

from tests import tables
from zoo.lab import table as table_module
from zoo.lab.runs import output_files
from zoo.lab.table import COUNT, NATS, Column, Table

# Quotation marks, what the readers take for comments, escapes or missing values, line breaks that
# are none, and characters that would break a line.
WORDS = ['"', '""', 'a"b', "'", "#", "\\", '\\"', "NA", "None", "nan", "007", "\u2028", "\x85", "é"]
BROKEN = {"a\tb": "a\\tb", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
NUMBERS = [1.5, -0.1, 1e-300, np.float32(0.1), math.inf, -math.inf, math.nan, np.float64(1 / 3)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.tsv"
    words = [*WORDS, *BROKEN]
    numbers = [NUMBERS[n % len(NUMBERS)] for n in range(len(words))]
    counts = 10**6 + np.arange(len(words))
    rows = zip(range(len(words)), words, numbers, counts, strict=True)
    output_files.write_table(path, ("row", "word", "number", "count"), rows)
    return path, [*WORDS, *BROKEN.values()]


def test_pandas_reads_every_row_and_number(table):
    path, words = table
    frame = tables.by_pandas(path)
    assert frame["row"].tolist() == [*range(len(words))]
    assert frame["count"].tolist() == [10**6 + n for n in range(len(words))]
    expected = [float(NUMBERS[n % len(NUMBERS)]) for n in range(len(words))]
    # pandas' own parser of numbers may be off by the last bit.
    np.testing.assert_allclose(frame["number"], expected, rtol=1e-15)
    # Words that pandas takes for missing are missing; all others are as they were.
    missing = ("NA", "None", "nan")
    assert frame["word"].isna().tolist() == [word in missing for word in words]
    assert frame["word"].dropna().tolist() == [word for word in words if word not in missing]


def test_pandas_reads_every_word_if_told_that_only_nothing_is_missing(table):
    path, words = table
    frame = tables.by_pandas(path, keep_default_na=False, na_values=[""])
    assert frame["word"].tolist() == words
    assert frame["number"].dtype == np.float64 and frame["number"].isna().sum() == 2


@pytest.mark.parametrize("options", [{}, {"quotes": "\"'", "comment": "#"}])
def test_r_reads_every_row(table, options):
    path, words = table
    rows = tables.by_r(path, **options)
    assert [row["word"] for row in rows] == [None if word == "NA" else word for word in words]
    assert [row["row"] for row in rows] == [str(n) for n in range(len(words))]
    # The names of numbers that are none, as R spells them.
    assert {row["number"] for row in rows[4:7]} == {"Inf", "-Inf", None}
    assert [row["word"] for row in tables.by_r(path, missing="")] == words


def test_names_of_a_users_columns_never_stand_twice():
    assert table_module.user_columns(("word", "end"), ("word", "x", "given_word")) == (
        "given_word",
        "x",
        "given_given_word",
    )


def test_a_table_has_no_command_to_a_terminal():
    row = table_module.tsv_line(["\x1b[31m", "\x07", "\x9b2J", "\x7f", "\x85", "\u200d", "\x92"])
    assert row == '"\\x1b[31m"\t"\\x07"\t"\\x9b2J"\t"\\x7f"\t"\x85"\t"\u200d"\t"\x92"\n'


COLUMNS = (
    Column("run"),
    Column("head", joined=True),
    Column("nats", NATS),
    Column("95 %", NATS, joined=True),
    Column("never there", COUNT),
    Column("tokens", COUNT),
)
ROWS = (
    ("a<b>", "Softmax", 1.23456, (1.0, 2.5), None, 1234),
    ("long name", "NCE", math.inf, (math.nan, math.nan), math.nan, -5),
    ("not ranked:",),
)


def test_figures_stand_to_the_right_and_empty_columns_are_left_out():
    assert [*Table(COLUMNS, ROWS).text()] == [
        "run          head       nats              95 %  tokens",
        "a<b>         Softmax  1.2346  [1.0000, 2.5000]   1,234",
        "long name    NCE         inf                 -      -5",
        "not ranked:",
    ]


def test_wide_tables_are_folded_between_joined_columns(monkeypatch):
    monkeypatch.setattr(table_module, "WIDTH", 46)
    folded = [*Table(COLUMNS, ROWS).text(fold=True)]
    assert [line.split()[:2] for line in folded[::4]] == [["run", "head"], ["run", "tokens"]]
    assert folded[0].endswith("95 %") and max(map(len, folded)) == 46
    monkeypatch.setattr(table_module, "WIDTH", 45)
    folded = [*Table(COLUMNS, ROWS).text(fold=True)]
    assert folded[::4] == ["run          head", "run            nats              95 %  tokens"]


def test_a_figure_has_its_interval_behind_it():
    rows = [("a", (1.5, 1.0, 2.0)), ("b", (1.5, math.nan, math.nan))]
    assert [*Table((Column("run"), Column("BLEU", ".1f")), rows).text()] == [
        "run            BLEU",
        "a    1.5 [1.0, 2.0]",
        "b               1.5",
    ]


def test_markdown_has_every_column():
    assert Table(COLUMNS[::2], [("a", 1.0, None), ("b",)]).markdown() == (
        "| run | nats | never there |\n| --- | --- | --- |\n| a | 1.0000 |  |\n| b |  |  |\n"
    )


def test_html_has_the_signs_of_print():
    page = Table(COLUMNS, ROWS).html("1 < 2")
    assert page.count("<tr>") == 4 and page.startswith('<p class="caption">1 &lt; 2</p>')
    assert '<th scope="row" class="left">a&lt;b&gt;</th>' in page
    assert '<td data-name="nats">∞</td><td data-name="95 %">–</td>' in page
    assert '<td data-name="tokens">−5</td>' in page and "never there" not in page
