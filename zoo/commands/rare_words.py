"""zoo rare-words: log-probability of rare numbers and names, each in its context."""

import argparse

from zoo.commands import judgement


def add_to(parser: argparse.ArgumentParser):
    """Adds the command's options."""
    judgement.add_to(parser)


def run(arguments: argparse.Namespace):
    """Prints and keeps what `zoo.evaluation.judgements.rare_words` finds."""
    from zoo.evaluation.judgements import rare_words

    judgement.run(rare_words, arguments)
