"""The command line of `zoo` and `python -m zoo`: the table of commands."""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zoo.errors import UserError
from zoo.lab.commands import options, program
from zoo.version import VERSION


class Command(NamedTuple):
    """A command: its module in zoo.lab.commands, which has the options NAME and run_NAME."""

    module: str
    about: str
    example: str


def load(name: str) -> tuple[Sequence[options.Option] | dict[str, options.Inner], Callable]:
    """Imports the module of a command; returns (the options, the function that runs it)."""
    module = importlib.import_module(f"zoo.lab.commands.{COMMANDS[name].module}")
    return getattr(module, name.upper()), getattr(module, f"run_{name}")


# The first `MAIN_COMMANDS` are those that most people look for.
MAIN_COMMANDS = 8
COMMANDS = {
    "data": Command(
        "corpora",
        "fetches free corpora, and verifies those already fetched",
        "wikitext-2 ud_czech_pdt",
    ),
    "text": Command(
        "text",
        "trains a model of your own text or pairs: tokenises, holds out parts, evaluates, reports",
        "my.txt runs/mine",
    ),
    "train": Command(
        "train",
        "trains a model, or resumes a run",
        "--config micro_log_linear runs/log_linear --set training.seed=1",
    ),
    "try": Command(
        "text",
        "trains several heads on a text for the same time, and tells which to take",
        "novel.txt --minutes 10",
    ),
    "evaluate": Command(
        "evaluate",
        "evaluates a trained model, and keeps each figure with its passport",
        "runs/log_linear --data sentences.txt",
    ),
    "compare": Command(
        "compare",
        "shows runs side by side, with tests of their differences: as text, picture or page",
        "runs/softmax runs/log_linear --page page.html",
    ),
    "score": Command(
        "evaluate",
        "computes log-probabilities of sentences or hypotheses; with --words, surprisal of words",
        "runs/log_linear sentences.txt --words --output words.tsv",
    ),
    "generate": Command(
        "evaluate",
        "samples text from a language model",
        "models/shakespeare --prompt KING --temperature 0.7",
    ),
    "translate": Command(
        "translate",
        "translates sentences by one run or an ensemble; computes BLEU of a split",
        "runs/en_fr sentences.en --beam 12 --output sentences.fr",
    ),
    "align": Command(
        "translate",
        "aligns the words of parallel sentences, and writes them in Pharaoh's format",
        "train.en train.fr --output train.align",
    ),
    "rescore": Command(
        "rescore",
        "tunes feature weights on n-best lists, and re-ranks n-best lists and lattices",
        "tune dev.nbest dev.txt --metric bleu --run runs/lm --weights weights.json",
    ),
    "words": Command(
        "evaluate",
        "prints the words of a run's lexicon as a table",
        "runs/log_linear --features",
    ),
    "encode": Command(
        "corpora",
        "encodes text that is larger than memory, so that runs can train on it",
        "corpus.txt --output encoded",
    ),
    "export": Command(
        "corpora",
        "exports a run to files that do not need Zoo: StableHLO programs, safetensors",
        "runs/log_linear exports/log_linear",
    ),
    "import": Command(
        "corpora",
        "reads a language model that PyTorch saved: word_language_model, awd-lstm-lm, flair ...",
        "model.pt models/colorless --words vocab.txt",
    ),
    "pull": Command(
        "corpora",
        "downloads an export from the Hugging Face hub, or a run from a bucket",
        "someone/model exports/model",
    ),
}


def run(name: str, words: Sequence[str] | None = None, program_name: str | None = None):
    """Runs a command by its words, by default those of the process."""
    table, run_command = load(name)
    parser = options.Parser(prog=program_name, **_description(name, program_name or name))
    options.add_to(parser, table, name)
    run_command(options.parse(parser, words))


def main(line: Sequence[str] | None = None):
    """Parses a command line, by default the process's own, and runs its command."""
    line = sys.argv[1:] if line is None else line
    if line and not line[0].startswith("-") and line[0] not in COMMANDS:
        raise UserError(_unknown_command(line[0]))
    if [*line[:1]] in ([], ["--help"], ["-h"]):
        print(_help())
        return
    parser = argparse.ArgumentParser(prog=program.prog())
    parser.add_argument("--version", action="version", version=f"zoo {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=options.Parser)
    for name in COMMANDS:
        command = commands.add_parser(name, **_description(name, f"{program.prog()} {name}"))
        if [name] == [*line[:1]]:
            table, run_command = load(name)
            options.add_to(command, table, name)
            command.set_defaults(do=run_command)
    arguments = options.parse(parser, line)
    arguments.do(arguments)


def _description(name, program_name):
    """Returns the description of a command and its example, for a parser."""
    command = COMMANDS[name]
    about = f"{command.about[0].upper()}{command.about[1:]}."
    return {"description": about, "epilog": f"Example: {program_name} {command.example}"}


def _help() -> str:
    """Returns the list of commands, those first that most people look for."""
    rows = [f"  {name:11}{command.about}" for name, command in COMMANDS.items()]
    program_name = program.prog()
    return "\n".join(
        [
            f"usage: {program_name} [-h] [--version] COMMAND ...",
            *("", "commands:", *rows[:MAIN_COMMANDS], "", "more commands:", *rows[MAIN_COMMANDS:]),
            *("", f"{program_name} COMMAND --help shows the options of a command and an example."),
        ]
    )


def _unknown_command(name: str) -> str:
    """Returns the message for a command that does not exist, with the nearest ones."""
    import difflib

    suggestions = difflib.get_close_matches(name, COMMANDS, n=2, cutoff=0.65)
    hint = f"did you mean {' or '.join(suggestions)}? The" if suggestions else "the"
    return f"there is no command {name!r}: {hint} commands are {', '.join(COMMANDS)}."
