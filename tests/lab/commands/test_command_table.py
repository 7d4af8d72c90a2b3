"""python -m zoo: its commands, their help and their scripts."""

import pathlib
import subprocess
import sys

import pytest

from zoo.lab.commands import command_table, options, program
from zoo.version import VERSION

ROOT = pathlib.Path(__file__).parents[3]


def parser_of(name):
    """The parser of a command."""
    option_table, _ = command_table.load(name)
    options.add_to(parser := options.Parser(), option_table, name)
    return parser


@pytest.mark.parametrize("script", program.SCRIPTS)
def test_a_script_is_a_command_of_its_name(script):
    text = (ROOT / script).read_text()
    assert text.count("\n") < 30
    assert f'command_table.run("{script.removesuffix(".py")}", words)' in text


@pytest.mark.parametrize("name", command_table.COMMANDS)
def test_the_help_of_a_command_says_what_it_does_with_an_example_of_its_options(name, capsys):
    command = command_table.COMMANDS[name]
    with pytest.raises(SystemExit):
        command_table.main([name, "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    assert f"{command.about[0].upper()}{command.about[1:]}." in help_text
    assert help_text.endswith(f"{name} {command.example}")
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
    errors = capsys.readouterr().err
    assert ended.value.code == 2 and errors.startswith(f"usage: {program.prog()} {usage} [-h] ")
    assert f"{usage}: error: unrecognized arguments: --" in errors


def test_without_a_command_the_commands_are_listed(capsys):
    command_table.main([])
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in command_table.COMMANDS)


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
        "    others = ('jax', 'numpy', 'zoo.lab.commands.train')\n"
        "    print(*(m for m in sys.modules if m in others), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "\n")
    if len(line) == 1:
        first, further = done.stdout.split("more commands:")
        listed = [
            [row.split()[0] for row in part.splitlines() if row.startswith("  ")]
            for part in (first, further)
        ]
        assert [*listed[0], *listed[1]] == [*command_table.COMMANDS] and len(listed[0]) == 8
