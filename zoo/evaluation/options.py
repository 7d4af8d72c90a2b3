"""Options of all programs that judge a run: which words, and normalised over what."""

import argparse

from zoo import files, trust
from zoo.errors import UserError


def add_trust_to(parser: argparse.ArgumentParser):
    """Adds --trust and --trust-paths."""
    add = parser.add_argument
    add(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="a function or component that the run names and that may be imported; may be repeated",
    )
    add("--trust-paths", action="store_true", help="reads what the run names wherever it lies")


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of the command line; what they name is the user's own (see `zoo.trust`)."""
    arguments = parser.parse_args()
    for value in vars(arguments).values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                trust.name(files.names_in(text))
    if arguments.trust_paths:
        trust.open_paths()
    return arguments


def add_to(parser: argparse.ArgumentParser):
    """Adds --lexicon, --add-words, --spread-unknown and --renormalise."""
    add = parser.add_argument
    add("--add-words", metavar="FILE", help="words, one a line, beside those of training")
    add("--lexicon", metavar="FILE", help="words, one a line, in the place of those of training")
    add(
        "--spread-unknown",
        action="store_true",
        help="with one of these: new words share the probability of the run's unknown word",
    )
    add(
        "--renormalise",
        action="store_true",
        help="over the words of the lexicon, where the head's sum to one over all spellings",
    )


def run_of(workdir: str, arguments: argparse.Namespace):
    """The run of a folder, with what the options change of it; UserError as Run's methods raise."""
    from zoo.evaluation.run import Run

    if arguments.lexicon and arguments.add_words:
        raise UserError(
            "--lexicon puts words in the place of those of training, and --add-words keeps these: "
            "give one of the two."
        )
    file = arguments.lexicon or arguments.add_words
    if arguments.spread_unknown and not file:
        raise UserError(
            "--spread-unknown is for words that training had not: give --add-words FILE or "
            "--lexicon FILE."
        )
    run = Run.load(workdir).with_lexicon(file, arguments.spread_unknown, bool(arguments.add_words))
    return run.renormalised() if arguments.renormalise else run
