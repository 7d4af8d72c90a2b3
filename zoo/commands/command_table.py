"""The command line of `zoo` and `python -m zoo`: the table of commands.

For a command NAME its module defines add_NAME_to(parser), which adds the options, and
run_NAME(arguments), which runs the command.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zoo.commands import completion, options, program
from zoo.version import VERSION


class Command(NamedTuple):
    """A command."""

    module: str
    about: str
    example: str


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
        "try_heads",
        "trains several heads on a text for the same time, and tells which to take",
        "novel.txt --minutes 10",
    ),
    "evaluate": Command(
        "evaluate",
        "evaluates a trained model, and keeps each figure with its passport",
        "runs/log_linear --data sentences.txt --surprisal words.tsv",
    ),
    "generate": Command(
        "evaluate",
        "samples text from a language model",
        "models/shakespeare --prompt KING --temperature 0.7",
    ),
    "score": Command(
        "evaluate",
        "computes log-probabilities of sentences, or of hypotheses in n-best lists",
        "runs/log_linear sentences.txt --output scores.tsv",
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
    "translate": Command(
        "translate",
        "translates sentences by one run or an ensemble; computes BLEU of a split",
        "runs/en_fr sentences.en --beam 12 --output sentences.fr",
    ),
    "bleu": Command(
        "reports",
        "compares translation scores of runs, with their intervals",
        "runs/en_fr runs/en_fr_attention",
    ),
    "words": Command(
        "reports", "prints the words of a run's lexicon as a table", "runs/log_linear --features"
    ),
    "compare": Command(
        "reports", "prints the results of runs side by side", "runs/softmax runs/log_linear"
    ),
    "report": Command(
        "reports",
        "writes a page to look at: curves, figures, a text word by word, differences",
        "runs/softmax runs/log_linear -o report.html",
    ),
    "plot": Command(
        "reports",
        "plots learning curves of runs, or their kept figures by word frequency or distance",
        "runs/softmax_0 runs/softmax_1 runs/log_linear --against minutes --file curves.svg",
    ),
    "sweep": Command(
        "reports",
        "plots the results of runs against one number of their recipes",
        "model.head.samples runs/nce_100 runs/nce_1000",
    ),
    "rank": Command(
        "reports",
        "measures and plots the rank of heads' log-probability matrices",
        "runs/softmax runs/mixture",
    ),
    "agreement": Command(
        "judgements",
        "measures accuracy on agreement pairs made from the runs' treebank, by distance",
        "runs/softmax runs/log_linear",
    ),
    "transfer": Command(
        "judgements",
        "compares runs on a treebank or text that none of them was made for, with their lexicons",
        "runs/softmax runs/log_linear --data partut.conllu",
    ),
    "rare-words": Command(
        "judgements",
        "measures the log-probability of rare numbers and names in their contexts",
        "runs/rare_words_softmax runs/rare_words_log_linear",
    ),
    "slot-errors": Command(
        "judgements",
        "counts names that generated realisations of meanings leave out or invent",
        "runs/e2e_plain runs/e2e_priming",
    ),
    "encode": Command(
        "corpora",
        "encodes text that is larger than memory, so that runs can train on it",
        "corpus.txt --output shards",
    ),
    "export": Command(
        "corpora",
        "exports a run to files that do not need Zoo: StableHLO programs, safetensors",
        "runs/log_linear exports/log_linear",
    ),
    "pull": Command(
        "corpora",
        "downloads an export from the Hugging Face hub, or a run from a bucket",
        "someone/model exports/model",
    ),
    "micro-report": Command(
        "reports",
        "compares models of the micro language with the language itself",
        "runs/quickstart/softmax runs/quickstart/log_linear",
    ),
}


def functions_of(command: str) -> tuple[Callable, Callable]:
    """Imports a command's module; returns (add_NAME_to, run_NAME)."""
    module = importlib.import_module(f"zoo.commands.{COMMANDS[command].module}")
    name = command.replace("-", "_")
    return getattr(module, f"add_{name}_to"), getattr(module, f"run_{name}")


def main(line: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and runs its command."""
    line = sys.argv[1:] if line is None else line
    line = completion.line() or line
    parser = argparse.ArgumentParser(prog=program.called())
    parser.add_argument("--version", action="version", version=f"zoo {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=options.Parser)
    for name, (_, about, example) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"Example: {program.called()} {name} {example}",
        )
        if [name] == [*line[:1]]:
            add_to, run = functions_of(name)
            add_to(command)
            options.add_common_to(command)
            command.set_defaults(do=run)
    arguments = options.parse(parser, line)
    arguments.do(arguments)
