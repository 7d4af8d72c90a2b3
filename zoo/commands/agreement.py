"""zoo agreement: accuracy on agreement pairs made from the runs' treebank."""

import argparse

from zoo.commands import judgement


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    judgement.add_to(parser)
    add = parser.add_argument
    add("--file", default="agreement.png", help="the picture to write: .png, .pdf or .svg")


def run(arguments: argparse.Namespace):
    """Prints the accuracies and draws them by distance."""
    from zoo.evaluation.judgements.agreement import report

    report(arguments.workdirs, arguments.split, arguments.file)
