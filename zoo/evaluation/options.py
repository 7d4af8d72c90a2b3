"""Options of all programs that judge a run: which words, and normalised over what."""

import argparse

from zoo.errors import UserError


def add_to(parser: argparse.ArgumentParser):
    """Adds --lexicon, --spread-unknown and --renormalise."""
    add = parser.add_argument
    add("--lexicon", metavar="FILE", help="words, one a line, in the place of those of training")
    add(
        "--spread-unknown",
        action="store_true",
        help="with --lexicon: new words share the probability of the run's unknown word",
    )
    add(
        "--renormalise",
        action="store_true",
        help="over the words of the lexicon, where the head's sum to one over all spellings",
    )


def run_of(workdir: str, arguments: argparse.Namespace):
    """The run of a folder, with what the options change of it; UserError as Run's methods raise."""
    from zoo.evaluation.run import Run

    if arguments.spread_unknown and not arguments.lexicon:
        raise UserError("--spread-unknown is for words of another lexicon: give --lexicon FILE.")
    run = Run.load(workdir).with_lexicon(arguments.lexicon, arguments.spread_unknown)
    return run.renormalised() if arguments.renormalise else run
