"""The command line of `zoo` and `python -m zoo`: its commands, each a module with two functions.

`add_to(parser)` adds a command's options, `run(arguments)` does what they say.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from zoo.commands import invocation, options

# {command: what it does}; its module is imported, and its options are built, when it is run.
COMMANDS = {
    "data": "fetches free corpora, and checks what is there",
    "train": "trains a model, or goes on with a run that was begun",
    "evaluate": "judges a trained model, and keeps each figure with its passport",
    "generate": "samples text from a language model",
    "score": "log-probabilities of sentences, or of the hypotheses of n-best lists",
    "align": "aligns the words of two files of translations, and writes Pharaoh's format",
    "rescore": "tunes weights for the features of n-best lists, and re-ranks the lists",
    "translate": "translates sentences, by one run or an ensemble; BLEU of a split",
    "bleu": "scores of translations with intervals, of one run, or of several side by side",
    "words": "prints the words of a run, as a table",
    "compare": "puts the results of runs side by side",
    "sweep": "draws the results of runs against one number of their experiments",
    "rank": "measures and draws the rank of heads' log-probability matrices",
    "agreement": "accuracy on agreement pairs made from the runs' treebank, by distance",
    "rare-words": "log-probability of rare numbers and names, each in its context",
    "slot-errors": "names that realisations of meanings leave out or make up",
    "encode": "encodes text that is larger than the memory, for training on it",
    "export": "writes a run as files that need none of this code: programs, safetensors",
    "pull": "fetches an export from the Hugging Face hub, or a run from a bucket",
    "micro-report": "puts models of the micro language beside the language itself",
}


def module_of(command: str) -> ModuleType:
    """The module of a command."""
    return importlib.import_module(f"zoo.commands.{command.replace('-', '_')}")


def main(line: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and does what it says."""
    line = sys.argv[1:] if line is None else line
    parser = argparse.ArgumentParser(prog=invocation.line())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=options.Parser)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if [name] == [*line[:1]]:
            module = module_of(name)
            module.add_to(command)
            options.add_common_to(command)
            command.set_defaults(do=module.run)
    arguments = options.parse(parser, line)
    arguments.do(arguments)
