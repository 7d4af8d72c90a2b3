"""Tables are read by pandas and R as they were written, whatever words are in them."""

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests import tables
from zoo import version
from zoo.errors import UserError
from zoo.lab.commands import command_table, options
from zoo.lab.evaluation import translation_quality
from zoo.lab.runs import output_files

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
    wanted = [float(NUMBERS[n % len(NUMBERS)]) for n in range(len(words))]
    # pandas' own parser of numbers may be off by the last bit.
    np.testing.assert_allclose(frame["number"], wanted, rtol=1e-15)
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
    assert output_files.beside(("word", "end"), ("word", "x", "given_word")) == (
        "given_word",
        "x",
        "given_given_word",
    )


def test_a_terminal_obeys_nothing_that_a_run_from_elsewhere_says(workdir, capsys, monkeypatch):
    red = "\x1b[31m\x07\x9b2J\u202e"
    recipe = workdir / "experiment.json"
    experiment = json.loads(recipe.read_text())
    (test,) = experiment["data"]["tests"]
    monkeypatch.chdir(workdir)
    shutil.copy(test, f"test{red}.txt")
    experiment["data"]["tests"] = [f"test{red}.txt"]
    recipe.write_text(json.dumps(experiment))
    command_table.main(["evaluate", str(workdir), "--split", "test"])
    printed = [capsys.readouterr()]
    (result,) = (workdir / "results").glob("*.json")
    passport = json.loads(result.read_text())
    passport |= {name: f"{passport[name]}{red}" for name in ("head", "counts", "split")}
    result.write_text(json.dumps(passport))
    picture = str(workdir / "picture.png")
    for line in (["compare"], ["compare", "--plot", picture, "--sweep", "training.batch"]):
        command_table.main([*line, str(workdir)])
        printed.append(capsys.readouterr())
    for out, _ in printed:
        assert "\\x1b[31m\\x07\\x9b2J\\u202e" in out
    assert all(c.isprintable() or c == "\n" for out, err in printed for c in out + err)


def test_a_report_of_translations_is_printable_too(capsys):
    red = {"score": 1.0, "signature": "a\x1b[31m"}
    passport = {"figures": {"BLEU": red}, "tokens": 2, "counts": "é\x9b", "data": {"path": "\x07"}}
    rows = [{"run": "one", "BLEU": {"score": 1.0, "interval": (0.5, 2.0), "p": None}}]
    output_files.show(translation_quality.table(rows, passport))
    assert capsys.readouterr().out == (
        "one  BLEU 1.00 [0.50, 2.00]\n"
        "2 sentences of \\x07, é\\x9b; in brackets 95 % by sentences drawn anew\n"
        "a\\x1b[31m\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "align text.txt text.txt --output text.txt",
        "align text.txt text.txt --dictionary ./text.txt",
        "score RUN text.txt --output text.txt",
        "words RUN --output RUN/lexicon.npz",
        "translate RUN text.txt --output text.txt",
        "translate RUN other.txt --dictionary text.txt --alignments text.txt",
        "score RUN text.txt[:2] --words --output text.txt",
        "score RUN --split test --words --output RUN/../test.txt",
    ],
)
def test_what_is_read_is_not_written_over(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    recipe = {"data": {"tests": [str(tmp_path / "test.txt")]}}
    (tmp_path / "run" / "experiment.json").write_text(json.dumps(recipe))
    for name in ("text.txt", "test.txt", "run/lexicon.npz"):
        (tmp_path / name).write_text("a b\n")
    words = line.replace("RUN", "run").split()
    with pytest.raises(UserError, match=f"^{words[-1]} is read, and the .* would overwrite it"):
        command_table.main(words)


def test_results_of_a_run_may_be_written_anew(tmp_path):
    for name in ("experiment.json", "table.tsv"):
        (tmp_path / name).write_text("{}")
    output_files.check_each((tmp_path / "table.tsv", "the table"), read=[str(tmp_path)])
    output_files.check_each(("/dev/null", "the table"), read=["/dev/null"])


def test_a_file_whose_name_begins_as_that_of_one_that_is_read_may_be_written(tmp_path):
    for name in ("text", "text.scores"):
        (tmp_path / name).write_text("a b\n")
    output_files.check_each((tmp_path / "text.scores", "the table"), read=[str(tmp_path / "text")])


# -------------------------------------------------------- the revision that passports name


def test_a_revision_is_dirty_if_its_code_was_changed_but_not_by_outputs(tmp_path, monkeypatch):
    def git(*arguments):
        identity = "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True)

    def revision():
        output_files.revision.cache_clear()
        return output_files.revision()

    module = tmp_path / "zoo" / "version.py"
    module.parent.mkdir()
    module.write_text("")
    monkeypatch.setattr(version, "__file__", str(module))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "First")
    clean = revision()
    assert len(clean) == 40
    (tmp_path / "agreement.png").write_text("a picture")
    assert revision() == clean
    (tmp_path / "my_module.py").write_text("")
    assert revision() == f"{clean}-dirty"
    (tmp_path / "my_module.py").unlink()
    module.write_text("changed = True")
    assert revision() == f"{clean}-dirty"
    output_files.revision.cache_clear()


def test_a_table_has_no_command_to_a_terminal():
    row = output_files.line(["\x1b[31m", "\x07", "\x9b2J", "\x7f", "\x85", "\u200d", "\x92"])
    assert row == '"\\x1b[31m"\t"\\x07"\t"\\x9b2J"\t"\\x7f"\t"\x85"\t"\u200d"\t"\x92"\n'


def test_words_of_a_model_are_no_commands_to_a_terminal(capsys, monkeypatch):
    lines = ["a\t\x1b[31m\u202e\n"]
    options.write(lines, None, "the table")
    assert capsys.readouterr().out == lines[0]  # a file has them as they are
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    options.write(lines, None, "the table")
    assert capsys.readouterr().out == "a\t\\x1b[31m\\u202e\n"
