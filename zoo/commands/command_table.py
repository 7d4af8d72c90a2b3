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
    "data": ("corpora", "fetches free corpora, and verifies those already fetched"),
    "train": ("train", "trains a model, or resumes a run"),
    "evaluate": ("evaluate", "evaluates a trained model, and keeps each figure with its passport"),
    "generate": ("generate", "samples text from a language model"),
    "score": (
        "evaluate",
        "computes log-probabilities of sentences, or of hypotheses in n-best lists",
    ),
    "align": (
        "align",
        "aligns the words of parallel sentences, and writes them in Pharaoh's format",
    ),
    "rescore": (
        "rescore",
        "tunes feature weights on n-best lists, and re-ranks n-best lists and lattices",
    ),
    "translate": (
        "translate",
        "translates sentences by one run or an ensemble; computes BLEU of a split",
    ),
    "bleu": (
        "bleu",
        "compares translation scores of runs, with their intervals",
    ),
    "words": ("reports", "prints the words of a run's lexicon as a table"),
    "compare": ("reports", "prints the results of runs side by side"),
    "report": (
        "reports",
        "writes a page to look at: curves, figures, a text word by word, differences",
    ),
    "sweep": ("reports", "plots the results of runs against one number of their recipes"),
    "rank": ("reports", "measures and plots the rank of heads' log-probability matrices"),
    "agreement": (
        "judgements",
        "measures accuracy on agreement pairs made from the runs' treebank, by distance",
    ),
    "transfer": (
        "judgements",
        "compares runs on a treebank or text that none of them was made for, with their lexicons",
    ),
    "rare-words": (
        "judgements",
        "measures the log-probability of rare numbers and names in their contexts",
    ),
    "slot-errors": (
        "judgements",
        "counts names that generated realisations of meanings leave out or invent",
    ),
    "encode": ("corpora", "encodes text that is larger than memory, so that runs can train on it"),
    "export": (
        "export",
        "exports a run to files that do not need Zoo: StableHLO programs, safetensors",
    ),
    "pull": ("export", "downloads an export from the Hugging Face hub, or a run from a bucket"),
    "micro-report": ("reports", "compares models of the micro language with the language itself"),
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
