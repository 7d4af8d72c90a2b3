"""zoo score: log-probabilities of sentences, or of the hypotheses of n-best lists."""

import argparse

from zoo.commands import options


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("text", metavar="FILE", help="a sentence a line; or CoNLL-U, or a table of items")
    add("--output", metavar="FILE", help="the table to write, with tabs; default: prints it")
    add("--nbest", action="store_true", help="lines of n-best lists: id ||| hypothesis ||| ...")
    add(
        "--column",
        type=options.whole(1),
        metavar="N",
        help="the sentence is the N-th field of tabs, or of |||",
    )
    options.add_to(parser)


def run(arguments: argparse.Namespace):
    """Writes or prints the table of scores."""
    from zoo.evaluation import score_stream

    options.check_outputs(arguments, output="the table")
    run = options.run_of(arguments.workdir, arguments)
    score_stream.report(run, arguments.text, arguments.output, arguments.nbest, arguments.column)
