"""python -m zoo: each command hands on what its line says."""

import argparse
import pathlib
import subprocess
import sys

import pytest

from launch import __main__ as launch
from zoo import __main__ as commands
from zoo.commands import command_table, options, program, train
from zoo.comparison import (
    agreement,
    bar_plots,
    compare,
    learning_curves,
    micro_report,
    page_report,
    rank,
    sweep,
)
from zoo.comparison.comparison import Wanted
from zoo.errors import UserError
from zoo.evaluation import run
from zoo.version import VERSION

ROOT = pathlib.Path(__file__).parents[2]
CASES = {
    "compare a b": (compare, "compare", (["a", "b"], False, Wanted(splits=[]))),
    "compare a --parts b": (compare, "compare", (["a", "b"], True, Wanted(splits=[]))),
    "sweep training.batch a b --file s.svg": (
        sweep,
        "report",
        ("training.batch", ["a", "b"], "s.svg", []),
    ),
    "sweep training.batch a": (sweep, "report", ("training.batch", ["a"], "sweep.png", [])),
    "rank a --contexts 7 --split test": (rank, "report", (["a"], 7, "test", "rank.png")),
    "rank a b": (rank, "report", (["a", "b"], 1024, "validation", "rank.png")),
    "agreement a": (agreement, "report", (["a"], [], "agreement.png", None, [])),
    "agreement a --split x --split y --file p.pdf": (
        agreement,
        "report",
        (["a"], ["x", "y"], "p.pdf", None, []),
    ),
    "sweep training.batch a --file s.svg b": (
        sweep,
        "report",
        ("training.batch", ["a", "b"], "s.svg", []),
    ),
    "agreement --split x a --file p.pdf b": (
        agreement,
        "report",
        (["a", "b"], ["x"], "p.pdf", None, []),
    ),
    "agreement a b --pairs p.tsv --label one --label two": (
        agreement,
        "report",
        (["a", "b"], [], "agreement.png", "p.tsv", ["one", "two"]),
    ),
    "plot a b": (learning_curves, "report", (["a", "b"], "plot.png", "step", False, [])),
    "plot a --against epoch --training b --file c.pdf": (
        learning_curves,
        "report",
        (["a", "b"], "c.pdf", "epoch", True, []),
    ),
    "plot --of bands a --split dev --label one": (
        bar_plots,
        "plot_bands",
        (["a"], "plot.png", "dev", ["one"]),
    ),
    "plot --of agreement a": (agreement, "plot_kept", (["a"], "plot.png", [])),
    "report a b": (page_report, "report", (["a", "b"], "report.html", None, None, 20, [])),
    "report a -o p.html --text t.txt --sentences 3 --label one": (
        page_report,
        "report",
        (["a"], "p.html", None, "t.txt", 3, ["one"]),
    ),
    "report a --split x --output p.html b": (
        page_report,
        "report",
        (["a", "b"], "p.html", "x", None, 20, []),
    ),
    "micro-report a b": (micro_report, "report", (["a", "b"],)),
}


@pytest.mark.parametrize("line", CASES)
def test_a_command_hands_on_what_its_line_says(monkeypatch, line):
    module, name, expected = CASES[line]
    given = []
    monkeypatch.setattr(module, name, lambda *arguments, load=None: given.append(arguments))
    monkeypatch.setattr(sys, "argv", ["zoo", *line.split()])
    commands.main()
    assert given == [expected]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("plot a --of bands --against epoch", "--against and --training are for learning curves"),
        ("plot a --of agreement --training", "--against and --training are for learning curves"),
        ("plot a --split test", "--split is for --of bands"),
    ],
)
def test_options_of_other_pictures_are_refused(line, why):
    with pytest.raises(UserError, match=why):
        commands.main(line.split())


class Stop(Exception):
    """A command has got as far as a test follows it."""


FOLDERS = {
    "train --config micro_softmax a": (train, "_train"),
    "train a --config micro_softmax --set training.epochs=1": (train, "_train"),
    "train --config micro_softmax --workdir a": (train, "_train"),
    "train --workdir a --config micro_softmax a": (train, "_train"),
    "evaluate a": (options, "run_of"),
    "evaluate --split test a": (options, "run_of"),
    "evaluate --workdir a --split test": (options, "run_of"),
    "generate a --count 2": (run.Run, "load"),
    "generate --workdir a": (run.Run, "load"),
}


@pytest.mark.parametrize("line", FOLDERS)
def test_the_folder_of_a_run_has_a_place_and_a_former_option(monkeypatch, line):
    def stop(*arguments):
        assert "a" in arguments
        raise Stop

    monkeypatch.setattr(*FOLDERS[line], stop)
    with pytest.raises(Stop):
        commands.main(line.split())


@pytest.mark.parametrize("line", ["train --config micro_softmax", "evaluate", "generate"])
def test_no_folder_and_two_folders_are_a_sentence(line):
    with pytest.raises(UserError, match=r"^no run is named: give its folder"):
        commands.main(line.split())
    with pytest.raises(UserError, match=r"^a and --workdir b are two folders"):
        commands.main([*line.split(), "a", "--workdir", "b"])


@pytest.mark.parametrize(
    ("script", "evaluate", "this"),
    [
        ("train.py", "python evaluate.py", "python train.py 'a b'"),
        (
            "/zoo here/train.py",
            "python '/zoo here/evaluate.py'",
            "python '/zoo here/train.py' 'a b'",
        ),
        ("/x/zoo/__main__.py", "python -m zoo evaluate", "python -m zoo 'a b'"),
        ("/no/bin/zoo", "/no/bin/zoo evaluate", "/no/bin/zoo 'a b'"),
    ],
)
def test_a_command_is_named_as_the_user_called_it(monkeypatch, script, evaluate, this):
    monkeypatch.setattr(sys, "argv", [script, "a b"])
    assert program.command("evaluate") == evaluate
    assert program.again() == this


def test_a_program_on_the_path_is_called_by_its_name(monkeypatch, tmp_path):
    script = tmp_path / "zoo"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(script), "train"])
    assert (program.command("train"), program.again()) == ("zoo train", "zoo train")


@pytest.mark.parametrize("script", program.SCRIPTS)
def test_a_script_is_a_command_of_its_name(script):
    text = (ROOT / script).read_text()
    assert text.count("\n") < 30
    command = script.removesuffix(".py")
    assert f"from zoo.commands import {command}" in text and f"{command}.main(words)" in text


def test_every_number_of_the_command_line_has_its_bounds():
    """Those that a parser would read without any, such as nan, are found by their type."""

    def parsers(parser):
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield from parsers(inner)

    tops = [command_table.functions_of(command)[0] for command in command_table.COMMANDS]
    for add_to in (*tops, *(module.add_to for module in launch.WAYS.values())):
        parser = argparse.ArgumentParser()
        add_to(parser)
        for inner in parsers(parser):
            assert not [a.dest for a in inner._actions if a.type in (int, float)]


@pytest.mark.parametrize("command", command_table.COMMANDS)
def test_the_help_of_a_command_says_what_it_does_with_an_example_of_its_options(command, capsys):
    _, about, example = command_table.COMMANDS[command]
    with pytest.raises(SystemExit):
        command_table.main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"{about[0].upper()}{about[1:]}." in told
    assert told.endswith(f"{command} {example}")
    parser = options.Parser()
    command_table.functions_of(command)[0](parser)
    assert parser.parse_args(example.split())


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        command_table.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"zoo {VERSION}\n")


def test_what_is_listed_is_listed_without_jax():
    """The options of a command, and what it imports, are there when that command runs."""
    source = (
        "import sys\n"
        "from zoo.commands import command_table\n"
        "try:\n"
        "    command_table.main(['--help'])\n"
        "except SystemExit:\n"
        "    others = ('jax', 'numpy', 'argcomplete', 'zoo.commands.train')\n"
        "    print(*(m for m in sys.modules if m in others))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "micro-report" in done.stdout and done.stdout.endswith("\n\n")  # nothing was imported


def actions(parser):
    """The options of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for other in action.choices.values():
                yield from actions(other)
        yield from ((name, action) for name in action.option_strings)


def test_an_option_takes_an_argument_in_every_command_or_in_none():
    """zoo train --show NAME printed a recipe, and zoo text --show printed a command."""
    flags, others = set(), set()
    for name in command_table.COMMANDS:
        command_table.functions_of(name)[0](parser := argparse.ArgumentParser())
        for option, action in actions(parser):
            (flags if action.nargs == 0 else others).add(option)
    # Lists are read by `score` and written by `translate`; `transfer` always tunes the weight.
    assert flags & others == {"--nbest", "--unseen-weight"}
