"""zoo rank: the rank of heads' log-probability matrices."""

import argparse

from zoo.commands import options


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    add = parser.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add("--contexts", type=options.whole(1), default=1024, help="rows of the matrix")
    add("--split", default="validation")
    add("--file", default="rank.png", help="the picture to write: .png, .pdf or .svg")


def run(arguments: argparse.Namespace):
    """Prints the ranks and draws the singular values."""
    from zoo.evaluation.reports.rank import report

    report(arguments.workdirs, arguments.contexts, arguments.split, arguments.file)
