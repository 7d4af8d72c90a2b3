"""Output files overwrite no input, and a report has no command to a terminal."""

import json
import shutil
import sys

import pytest

from tests import passports
from zoo.errors import UserError
from zoo.lab.commands import command_table, options
from zoo.lab.evaluation import translation_quality
from zoo.lab.runs import output_files


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
    for line in (["compare"], ["compare", "--plot", picture, "--by", "frequency"]):
        command_table.main([*line, str(workdir)])
        printed.append(capsys.readouterr())
    for out, _ in printed:
        assert "\\x1b[31m\\x07\\x9b2J\\u202e" in out
    assert all(c.isprintable() or c == "\n" for out, err in printed for c in out + err)


def test_a_report_of_translations_is_printable_too(capsys):
    texts = {"tokens": 2, "counts": "é\x9b", "data__path": "\x07"}
    passport = passports.make(passports.TRANSLATION, figures__BLEU__signature="a\x1b[31m", **texts)
    rows = [{"run": "one", "BLEU": {"score": 1.0, "interval": (0.5, 2.0), "p": None}}]
    output_files.show(translation_quality.table(rows, passport))
    assert capsys.readouterr().out == (
        "run               BLEU\n"
        "one  1.00 [0.50, 2.00]\n"
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
    output_files.check_each((tmp_path / "table.tsv", "the table"), inputs=[str(tmp_path)])
    output_files.check_each(("/dev/null", "the table"), inputs=["/dev/null"])


def test_a_file_whose_name_begins_as_that_of_one_that_is_read_may_be_written(tmp_path):
    for name in ("text", "text.scores"):
        (tmp_path / name).write_text("a b\n")
    output_files.check_each(
        (tmp_path / "text.scores", "the table"), inputs=[str(tmp_path / "text")]
    )


def test_words_of_a_model_are_no_commands_to_a_terminal(capsys, monkeypatch):
    lines = ["a\t\x1b[31m\u202e\n"]
    options.write(lines, None, "the table")
    assert capsys.readouterr().out == lines[0]  # a file has them as they are
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    options.write(lines, None, "the table")
    assert capsys.readouterr().out == "a\t\\x1b[31m\\u202e\n"
