"""The command line of `zoo` and `python -m zoo`: the table of commands.

For a command NAME its module defines add_NAME_to(parser), which adds the options, and
run_NAME(arguments), which runs the command.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

from zoo.commands import options, program

# {command: (its module, its help)}. A module is imported only when one of its commands is run.
COMMANDS = {
    "data": ("corpora", "fetches free corpora, and checks what is there"),
    "train": ("train", "trains a model, or goes on with a run that was begun"),
    "evaluate": ("evaluate", "judges a trained model, and keeps each figure with its passport"),
    "generate": ("generate", "samples text from a language model"),
    "score": ("evaluate", "log-probabilities of sentences, or of the hypotheses of n-best lists"),
    "align": (
        "align",
        "aligns the words of two files of translations, and writes Pharaoh's format",
    ),
    "rescore": (
        "rescore",
        "tunes weights for the features of n-best lists, and re-ranks the lists",
    ),
    "translate": ("translate", "translates sentences, by one run or an ensemble; BLEU of a split"),
    "bleu": (
        "bleu",
        "scores of translations with intervals, of one run, or of several side by side",
    ),
    "words": ("reports", "prints the words of a run, as a table"),
    "compare": ("reports", "puts the results of runs side by side"),
    "sweep": ("reports", "draws the results of runs against one number of their experiments"),
    "rank": ("reports", "measures and draws the rank of heads' log-probability matrices"),
    "agreement": (
        "judgements",
        "accuracy on agreement pairs made from the runs' treebank, by distance",
    ),
    "rare-words": ("judgements", "log-probability of rare numbers and names, each in its context"),
    "slot-errors": ("judgements", "names that realisations of meanings leave out or make up"),
    "encode": ("corpora", "encodes text that is larger than the memory, for training on it"),
    "export": (
        "export",
        "writes a run as files that need none of this code: programs, safetensors",
    ),
    "pull": ("export", "fetches an export from the Hugging Face hub, or a run from a bucket"),
    "micro-report": ("reports", "puts models of the micro language beside the language itself"),
}


def functions_of(command: str) -> tuple[Callable, Callable]:
    """Imports a command's module; returns (add_NAME_to, run_NAME)."""
    module = importlib.import_module(f"zoo.commands.{COMMANDS[command][0]}")
    name = command.replace("-", "_")
    return getattr(module, f"add_{name}_to"), getattr(module, f"run_{name}")


def main(line: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and runs its command."""
    line = sys.argv[1:] if line is None else line
    parser = argparse.ArgumentParser(prog=program.called())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=options.Parser)
    for name, (_, about) in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if [name] == [*line[:1]]:
            add_to, run = functions_of(name)
            add_to(command)
            options.add_common_to(command)
            command.set_defaults(do=run)
    arguments = options.parse(parser, line)
    arguments.do(arguments)
