"""python -m zoo: each command hands on what its line says."""

import sys

import pytest

from zoo import __main__ as commands
from zoo.evaluation.judgements import agreement
from zoo.evaluation.reports import compare, micro_report, rank, sweep

CASES = {
    "compare a b": (compare, "compare", (["a", "b"],)),
    "sweep training.batch a b --file s.svg": (
        sweep,
        "report",
        ("training.batch", ["a", "b"], "s.svg"),
    ),
    "sweep training.batch a": (sweep, "report", ("training.batch", ["a"], "sweep.png")),
    "rank a --contexts 7 --split test": (rank, "report", (["a"], 7, "test", "rank.png")),
    "rank a b": (rank, "report", (["a", "b"], 1024, "validation", "rank.png")),
    "agreement a": (agreement, "report", (["a"], [], "agreement.png")),
    "agreement a --split x --split y --file p.pdf": (
        agreement,
        "report",
        (["a"], ["x", "y"], "p.pdf"),
    ),
    "micro-report a b": (micro_report, "report", (["a", "b"],)),
}


@pytest.mark.parametrize("line", CASES)
def test_a_command_hands_on_what_its_line_says(monkeypatch, line):
    module, name, expected = CASES[line]
    given = []
    monkeypatch.setattr(module, name, lambda *arguments: given.append(arguments))
    monkeypatch.setattr(sys, "argv", ["zoo", *line.split()])
    commands.main()
    assert given == [expected]
