"""zoo words: the words of a run, as a table."""

import argparse

from zoo.commands import options


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("workdir", metavar="DIR", help="folder of a training run")
    add("--features", action="store_true", help="with the features of each")
    add("--output", metavar="FILE", help="the table to write; default: prints it")


def run(arguments: argparse.Namespace):
    """Writes or prints the table of words."""
    from zoo.evaluation import word_lists

    options.check_outputs(arguments, output="the table")
    word_lists.report(arguments.workdir, arguments.features, arguments.output)
