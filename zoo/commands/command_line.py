"""The command line of `zoo` and `python -m zoo`: its commands, each a module with two functions.

`add_to(parser)` adds a command's options, `run(arguments)` does what they say.
"""

import argparse
from collections.abc import Sequence

from zoo.commands import (
    agreement,
    align,
    bleu,
    compare,
    data,
    encode,
    evaluate,
    export,
    generate,
    invocation,
    micro_report,
    options,
    pull,
    rank,
    rare_words,
    rescore,
    score,
    slot_errors,
    sweep,
    train,
    translate,
    words,
)

COMMANDS = {
    "data": (data, "fetches free corpora, and checks what is there"),
    "train": (train, "trains a model, or goes on with a run that was begun"),
    "evaluate": (evaluate, "judges a trained model, and keeps each figure with its passport"),
    "generate": (generate, "samples text from a language model"),
    "score": (score, "log-probabilities of sentences, or of the hypotheses of n-best lists"),
    "align": (align, "aligns the words of two files of translations, and writes Pharaoh's format"),
    "rescore": (rescore, "tunes weights for the features of n-best lists, and re-ranks the lists"),
    "translate": (translate, "translates sentences, by one run or an ensemble; BLEU of a split"),
    "bleu": (bleu, "scores of translations with intervals, of one run, or of several side by side"),
    "words": (words, "prints the words of a run, as a table"),
    "compare": (compare, "puts the results of runs side by side"),
    "sweep": (sweep, "draws the results of runs against one number of their experiments"),
    "rank": (rank, "measures and draws the rank of heads' log-probability matrices"),
    "agreement": (
        agreement,
        "accuracy on agreement pairs made from the runs' treebank, by distance",
    ),
    "rare-words": (
        rare_words,
        "log-probability of rare numbers and names, each in its context",
    ),
    "slot-errors": (
        slot_errors,
        "names that realisations of meanings leave out or make up",
    ),
    "encode": (encode, "encodes text that is larger than the memory, for training on it"),
    "export": (export, "writes a run as files that need none of this code: programs, safetensors"),
    "pull": (pull, "fetches an export from the Hugging Face hub, or a run from a bucket"),
    "micro-report": (micro_report, "puts models of the micro language beside the language itself"),
}


def main(line: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and does what it says."""
    parser = argparse.ArgumentParser(prog=invocation.line())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=options.Parser)
    for name, (module, about) in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        module.add_to(command)
        options.add_common_to(command)
        command.set_defaults(do=module.run)
    arguments = options.parse(parser, line)
    arguments.do(arguments)
