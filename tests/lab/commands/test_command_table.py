"""python -m zoo: each command hands on what its line says."""

import argparse
import pathlib
import re
import subprocess
import sys

import pytest

import configs
from launch import __main__ as launch
from zoo import __main__ as commands
from zoo.errors import UserError
from zoo.lab.commands import command_table, options, program, train
from zoo.lab.comparison import (
    bar_plots,
    learning_curves,
    micro_report,
    page_report,
    sweep,
    text_report,
)
from zoo.lab.comparison.comparison import Wanted
from zoo.lab.evaluation import run
from zoo.version import VERSION

ROOT = pathlib.Path(__file__).parents[3]
CASES = {
    "compare a b": (text_report, "tables", (["a", "b"], False, Wanted(splits=[]))),
    "compare a --split x b": (text_report, "tables", (["a", "b"], False, Wanted(splits=["x"]))),
    "compare a --by frequency b": (text_report, "tables", (["a", "b"], True, Wanted(splits=[]))),
    "compare a b --sweep training.batch --plot s.svg --label one": (
        sweep,
        "report",
        ("training.batch", ["a", "b"], "s.svg", ["one"]),
    ),
    "compare a --sweep training.batch": (
        sweep,
        "report",
        ("training.batch", ["a"], "sweep.png", []),
    ),
    "compare a b --plot c.svg": (
        learning_curves,
        "report",
        (["a", "b"], "c.svg", "step", False, []),
    ),
    "compare a --against epoch --training b --plot c.pdf": (
        learning_curves,
        "report",
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
        "report",
        (["a", "b"], "p.html", None, None, 20, []),
    ),
    "compare a --page p.html --text t.txt --sentences 3 --label one": (
        page_report,
        "report",
        (["a"], "p.html", None, "t.txt", 3, ["one"]),
    ),
    "compare a --split x --page p.html b": (
        page_report,
        "report",
        (["a", "b"], "p.html", "x", None, 20, []),
    ),
    "compare a b --micro": (micro_report, "report", (["a", "b"],)),
}


@pytest.mark.parametrize("line", CASES)
def test_a_command_hands_on_what_its_line_says(monkeypatch, line):
    module, name, expected = CASES[line]
    given = []
    monkeypatch.setattr(module, name, lambda *arguments, load=None: given.append(arguments))
    monkeypatch.setattr(sys, "argv", ["zoo", *line.split()])
    commands.main()
    assert given == [expected]


def test_the_runs_of_a_comparison_on_another_text_are_loaded_with_its_words(monkeypatch):
    given = []
    monkeypatch.setattr(text_report, "report", lambda *arguments: given.extend(arguments))
    monkeypatch.setattr(options, "run_with_words", lambda folder, arguments: arguments.add_words)
    line = "compare a --data t.txt b --state carried --unseen-weight --add-words w.txt"
    commands.main(line.split())
    runs, file, load, state, mixed = given
    assert (runs, file, load("a"), state, mixed) == (["a", "b"], "t.txt", "w.txt", "carried", True)


def parser_of(name):
    """The parser of a command."""
    given, _ = command_table.COMMANDS[name].loaded()
    options.add_to(parser := options.Parser(), given, name)
    return parser


@pytest.mark.parametrize("command", options.RULES)
def test_each_rule_refuses_a_line_and_lets_another_pass(command):
    name, *inner = command.split()
    parser = parser_of(name)
    if inner:
        (choices,) = (a.choices for a in parser._actions if a.nargs == argparse.PARSER)
        parser = choices[inner[0]]
    actions = {name: a for a in parser._actions for name in a.option_strings or [a.metavar]}

    def line(rule, *given):
        """A line with these options, such as "--metric bleu", "--run DIR" or "FILE"."""
        values = {action.dest: action.default for action in parser._actions}
        for option, _, value in (text.partition(" ") for text in given):
            action = actions[option]
            assert not action.default and (not value.islower() or value in action.choices)
            values[action.dest] = value if value.islower() else "x"
        return argparse.Namespace(rules=(rule,), **values)

    for rule in options.rules_of(command):
        option, needs, others, _ = rule
        for right, given in ((not needs, [option]), *((needs, [option, o]) for o in others)):
            if right:
                options.check_rules(line(rule, *given))
            else:
                with pytest.raises(UserError, match=f"^{option} ") as refused:
                    options.check_rules(line(rule, *given))
                assert all(other in str(refused.value) for other in given)
        options.check_rules(line(rule))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "try t.txt --minutes 1 --steps 1",
            "--minutes and --steps exclude each other: leave out --steps, or --minutes.",
        ),
        (
            "rescore tune l --metric wer --tokenize 13a",
            "--tokenize is for BLEU: give --metric bleu, too, or leave --tokenize out.",
        ),
        (
            "rescore lattices a l --weights w --weight 1 --acoustic-weight 0",
            "--weights has all weights: leave out --weight and --acoustic-weight, or --weights.",
        ),
    ],
)
def test_options_that_need_or_exclude_others_are_told(line, why):
    with pytest.raises(UserError, match=f"^{re.escape(why)}$"):
        commands.main(line.split())


class Stop(Exception):
    """A command has got as far as a test follows it."""


FOLDERS = {
    "train --config micro_softmax a": (train, "_train"),
    "train a --config micro_softmax --set training.epochs=1": (train, "_train"),
    "evaluate a": (options, "run_of"),
    "evaluate --split test a": (options, "run_of"),
    "generate a --count 2": (run.Run, "load"),
}


@pytest.mark.parametrize("line", FOLDERS)
def test_the_folder_of_a_run_may_stand_before_or_behind_options(monkeypatch, line):
    def stop(*arguments):
        assert "a" in arguments
        raise Stop

    monkeypatch.setattr(*FOLDERS[line], stop)
    with pytest.raises(Stop):
        commands.main(line.split())


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
    assert f'command_table.run("{script.removesuffix(".py")}", words)' in text


def test_every_number_of_the_command_line_has_its_bounds():
    """Those that a parser would read without any, such as nan, are found by their type."""

    def parsers(parser):
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield from parsers(inner)

    every = [*map(parser_of, command_table.COMMANDS)]
    for module in launch.WAYS.values():
        every.append(argparse.ArgumentParser())
        for option in module.OPTIONS:
            option.add_to(every[-1])
    for parser in every:
        for inner in parsers(parser):
            assert not [a.dest for a in inner._actions if a.type in (int, float)]


@pytest.mark.parametrize("name", command_table.COMMANDS)
def test_the_help_of_a_command_says_what_it_does_with_an_example_of_its_options(name, capsys):
    command = command_table.COMMANDS[name]
    with pytest.raises(SystemExit):
        command_table.main([name, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"{command.about[0].upper()}{command.about[1:]}." in told
    assert told.endswith(f"{name} {command.example}")
    assert parser_of(name).parse_args(command.example.split())


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("generate run --promt x", "generate"),
        ("rescore lattices run l.slf --arpa x", "rescore lattices"),
        ("rescore tune --arpa x l r --metric wer --words w", "rescore tune"),
    ],
)
def test_an_unknown_option_is_told_under_the_usage_of_its_command(line, usage, capsys):
    with pytest.raises(SystemExit) as ended:
        command_table.main(line.split())
    told = capsys.readouterr().err
    assert ended.value.code == 2 and told.startswith(f"usage: {program.called()} {usage} [-h] ")
    assert f"{usage}: error: unrecognized arguments: --" in told


def test_without_a_command_the_commands_are_listed(capsys):
    command_table.main([])
    told = capsys.readouterr().out
    assert all(f"  {name} " in told for name in command_table.COMMANDS)


def test_progress_is_told_twice_a_minute_outside_a_terminal(capsys):
    """The first takes no time; the second begins 40 s ago."""
    assert [*options.progress("lattices", "ab")] == ["a", "b"]
    assert capsys.readouterr().err == ""
    bar = options.progress("lattices", "ab")
    bar.start_t = bar.last_print_t = bar.start_t - 40
    assert [*bar] == ["a", "b"]
    assert "1/2 [00:40<00:40" in capsys.readouterr().err


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        command_table.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"zoo {VERSION}\n")


@pytest.mark.parametrize("line", [["--help"], ["compare", "--help"]], ids=" ".join)
def test_commands_are_listed_without_jax(line):
    """The options of a command, and what it imports, are there when that command runs."""
    source = (
        "import sys\n"
        "from zoo.lab.commands import command_table\n"
        "try:\n"
        f"    command_table.main({line})\n"
        "finally:\n"
        "    others = ('jax', 'numpy', 'argcomplete', 'zoo.lab.commands.train')\n"
        "    print(*(m for m in sys.modules if m in others), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "\n")
    if len(line) == 1:
        first, more = done.stdout.split("more commands:")
        listed = [
            [row.split()[0] for row in part.splitlines() if row.startswith("  ")]
            for part in (first, more)
        ]
        assert [*listed[0], *listed[1]] == [*command_table.COMMANDS] and len(listed[0]) == 8


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
        for option, action in actions(parser_of(name)):
            (flags if action.nargs == 0 else others).add(option)
    # Lists are read by `score` and written by `translate`; `compare` always tunes the weight; of
    # lattices, --words is a file, as in Kaldi.
    assert flags & others == {"--nbest", "--unseen-weight", "--words"}


def test_configs_are_listed_by_family_with_size_and_time(capsys):
    commands.main(["train", "--list"])
    lines = capsys.readouterr().out.splitlines()
    rows = {line[2:].split()[0]: line for line in lines if line[:2] in ("* ", "  ")}
    assert {*rows} == {*configs.names()}
    starred = [name for name, row in rows.items() if row.startswith("*")]
    assert starred == [*[*rows][:5], "micro_translation"]  # the first, and one of translations
    # As the docstrings of the three tell.
    for name, cost in (("ptb_softmax", "22 min"), ("ptb_awd_lstm", "24M"), ("lm1b_big", "1.8B")):
        row = " ".join(rows[name].split(name)[1].split())
        assert row.startswith(f"{cost} {configs.summary(name)}")
    families = [line.partition("/ ")[0] for line in lines if line[:1].islower()]
    assert families[:2] == ["micro", "own"] and sorted(families) == configs.FAMILIES


def test_fields_are_set_as_ml_collections_writes_them(capsys):
    words = ["train", "--show", "micro_softmax", "--config.training.batch=7", "--set"]
    commands.main([*words, "training.length=9", "--config.model.core.size=12"])
    told = capsys.readouterr().out
    for setting in ("    batch = 7\n", "    length = 9\n", "      size = 12\n"):
        assert setting in told
    with pytest.raises(UserError, match=r"^--set training\.batch: write it as field=value"):
        commands.main(["train", "--show", "micro_softmax", "--config.training.batch", "7"])
