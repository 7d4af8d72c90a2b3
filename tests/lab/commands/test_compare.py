"""zoo compare hands on what its line says."""

import sys

import pytest

from tests.lab.comparison.test_comparison import keep
from zoo import __main__ as commands
from zoo.lab import micro_report
from zoo.lab.commands import options
from zoo.lab.comparison import bar_plots, learning_curves, page_report, text_report

CASES = {
    "compare a b": (text_report, "tables", (["a", "b"], False, [])),
    "compare a --split x b": (text_report, "tables", (["a", "b"], False, ["x"])),
    "compare a --by frequency b": (text_report, "tables", (["a", "b"], True, [])),
    "compare a b --plot c.svg": (
        learning_curves,
        "plot_curves",
        (["a", "b"], "c.svg", "step", False, []),
    ),
    "compare a --against epoch --training b --plot c.pdf": (
        learning_curves,
        "plot_curves",
        (["a", "b"], "c.pdf", "epoch", True, []),
    ),
    "compare --by frequency a --split dev --label one --plot b.png": (
        bar_plots,
        "plot_bands",
        (["a"], "b.png", "dev", ["one"]),
    ),
    "compare --by distance a --plot d.png": (
        bar_plots,
        "plot_agreement",
        (["a"], "d.png", None, []),
    ),
    "compare a b --page p.html": (
        page_report,
        "write_page",
        (["a", "b"], "p.html", None, None, 20, []),
    ),
    "compare a --page p.html --text t.txt --sentences 3 --label one": (
        page_report,
        "write_page",
        (["a"], "p.html", None, "t.txt", 3, ["one"]),
    ),
    "compare a --split x --page p.html b": (
        page_report,
        "write_page",
        (["a", "b"], "p.html", "x", None, 20, []),
    ),
    "compare a b --micro": (micro_report, "report_micro", (["a", "b"],)),
}


@pytest.mark.parametrize("line", CASES)
def test_a_command_hands_on_what_its_line_says(monkeypatch, line):
    module, name, expected = CASES[line]
    calls = []
    monkeypatch.setattr(module, name, lambda *arguments, load=None: calls.append(arguments))
    monkeypatch.setattr(sys, "argv", ["zoo", *line.split()])
    commands.main()
    assert calls == [expected]


def test_the_runs_of_a_page_are_loaded_with_its_words(monkeypatch):
    loads = []
    monkeypatch.setattr(page_report, "write_page", lambda *_, load: loads.append(load))
    monkeypatch.setattr(options, "run_with_words", lambda folder, arguments: arguments.add_words)
    commands.main(
        ["compare", "a", "b", "--page", "p.html", "--text", "t.txt", "--add-words", "w.txt"]
    )
    assert [load("a") for load in loads] == ["w.txt"]


def test_a_folder_is_a_run_whatever_its_name(tmp_path, capsys):
    runs = [keep(tmp_path / name, {}) for name in ("x.json", "y")]
    commands.main(["compare", *runs])
    rows = capsys.readouterr().out.splitlines()[1:3]
    assert sorted(row.split()[0] for row in rows) == ["x.json", "y"]
