"""zoo slot-errors: names that realisations of meanings leave out or make up."""

import argparse

from zoo.commands import judgement


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    judgement.add_to(parser)


def run(arguments: argparse.Namespace):
    """Prints and keeps what `zoo.papers.slot_errors` finds."""
    from zoo.papers import slot_errors

    judgement.run(slot_errors, arguments)
