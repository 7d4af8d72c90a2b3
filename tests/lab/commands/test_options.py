"""Options: which go together, where they stand, and what bounds they have."""

import argparse
import re

import pytest

from launch import __main__ as launch
from tests.lab.commands.test_command_table import parser_of
from zoo import __main__ as commands
from zoo.errors import UserError
from zoo.lab.commands import command_table, options
from zoo.lab.evaluation import run
from zoo.lab.training import train


def tables():
    """{command, such as "rescore tune": its options}."""
    for name in command_table.COMMANDS:
        table, _ = command_table.load(name)
        inner = table if isinstance(table, dict) else {}
        yield from ((f"{name} {part}", inner[part].options) for part in inner)
        if not inner:
            yield name, table


RULES = {command: options.read_rules(command, table) for command, table in tables()}


@pytest.mark.parametrize("command", [command for command, rules in RULES.items() if rules])
def test_each_rule_refuses_a_line_and_lets_another_pass(command):
    name, *inner = command.split()
    parser = parser_of(name)
    if inner:
        (choices,) = (a.choices for a in parser._actions if a.nargs == argparse.PARSER)
        parser = choices[inner[0]]
    actions = {name: a for a in parser._actions for name in a.option_strings or [a.metavar]}

    def line(rule, *present):
        """A line with these options, such as "--metric bleu", "--run DIR" or "FILE"."""
        values = {action.dest: action.default for action in parser._actions}
        for option, _, value in (text.partition(" ") for text in present):
            action = actions[option]
            assert not action.default and (not value.islower() or value in action.choices)
            values[action.dest] = value if value.islower() else "x"
        return argparse.Namespace(rules=(rule,), **values)

    for rule in RULES[command]:
        option, needs, choices, _ = rule
        for right, present in ((not needs, [option]), *((needs, [option, o]) for o in choices)):
            if right:
                options.check_rules(line(rule, *present))
            else:
                with pytest.raises(UserError, match=f"^{option} ") as refused:
                    options.check_rules(line(rule, *present))
                assert all(option_text in str(refused.value) for option_text in present)
        options.check_rules(line(rule))


@pytest.mark.parametrize(
    ("line", "message"),
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
def test_options_that_need_or_exclude_others_are_told(line, message):
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        commands.main(line.split())


class Stop(Exception):
    """A command has got as far as a test follows it."""


FOLDERS = {
    "train --config micro_softmax a": (train, "train"),
    "train a --config micro_softmax --set training.epochs=1": (train, "train"),
    "evaluate a": (run.Run, "load"),
    "evaluate --split test a": (run.Run, "load"),
    "generate a --count 2": (run.Run, "load"),
}


@pytest.mark.parametrize("line", FOLDERS)
def test_the_folder_of_a_run_may_stand_before_or_behind_options(monkeypatch, line):
    def stop(*arguments, **options):
        assert "a" in arguments
        raise Stop

    monkeypatch.setattr(*FOLDERS[line], stop)
    with pytest.raises(Stop):
        commands.main(line.split())


def test_every_number_of_the_command_line_has_its_bounds():
    """Those that a parser would read without any, such as nan, are found by their type."""

    def parsers(parser):
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield from parsers(inner)

    all_parsers = [*map(parser_of, command_table.COMMANDS)]
    for module in launch.WAYS.values():
        all_parsers.append(argparse.ArgumentParser())
        for option in module.OPTIONS:
            option.add_to(all_parsers[-1])
    for parser in all_parsers:
        for inner in parsers(parser):
            assert not [a.dest for a in inner._actions if a.type in (int, float)]


def test_progress_is_told_twice_a_minute_outside_a_terminal(capsys):
    """The first takes no time; the second begins 40 s ago."""
    assert [*options.progress("lattices", "ab")] == ["a", "b"]
    assert capsys.readouterr().err == ""
    bar = options.progress("lattices", "ab")
    bar.start_t = bar.last_print_t = bar.start_t - 40
    assert [*bar] == ["a", "b"]
    assert "1/2 [00:40<00:40" in capsys.readouterr().err


def actions(parser):
    """The options of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions(inner)
        yield from ((name, action) for name in action.option_strings)


def test_an_option_takes_an_argument_in_every_command_or_in_none():
    """zoo train --show NAME printed a recipe, and zoo text --show printed a command."""
    flags, valued = set(), set()
    for name in command_table.COMMANDS:
        for option, action in actions(parser_of(name)):
            (flags if action.nargs == 0 else valued).add(option)
    # Lists are read by `score` and written by `translate`; of lattices, --words is a file, as in
    # Kaldi.
    assert flags & valued == {"--nbest", "--words"}
