"""zoo bleu: translations of a split by several runs, against the first, by paired bootstrap."""

import argparse
import pathlib

from zoo.errors import UserError


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add(
        "results",
        nargs="+",
        metavar="DIR",
        help="folders of runs that translate --bleu judged, or files of their results",
    )
    add("--split", default="test", metavar="NAME", help="default: %(default)s")
    add("--samples", type=int, default=1000, help="of the bootstrap; default: %(default)s")


def run(arguments: argparse.Namespace):
    """Prints a table of scores, half of their 95% intervals, and p of the difference."""
    from zoo.evaluation import bleu
    from zoo.runs.workdir import Workdir

    if len(arguments.results) < 2:
        raise UserError("one result has nothing beside it: give two folders of runs, or more.")
    if arguments.samples < 1:
        raise UserError(f"--samples {arguments.samples}: give at least 1.")
    results = [bleu.read(path, arguments.split) for path in arguments.results]
    folder = pathlib.Path(arguments.results[0])
    experiment = Workdir(folder if folder.is_dir() else folder.parent.parent).experiment()
    corpus = experiment.vocabulary.read(experiment.data.as_written(), arguments.split)
    rows = bleu.compare(arguments.results, results, corpus.sentences, arguments.samples)
    print(bleu.table(rows, results[0][0]))
