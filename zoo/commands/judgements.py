"""zoo agreement, transfer, rare-words and slot-errors: judgements of runs side by side."""

import argparse
import functools
from types import ModuleType

from zoo.commands import options
from zoo.data.batches import POLICIES
from zoo.evaluation import perplexity


def add_agreement_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo agreement`."""
    _add_runs_to(parser)
    add = parser.add_argument
    options.add_picture_to(parser, "agreement.png")
    add(
        "--pairs",
        metavar="FILE.tsv",
        help="also writes the pairs of all runs to one table: sentences, words, distance, "
        "log-probabilities, and whether the model is right",
    )


@perplexity.on_terminal()
def run_agreement(arguments: argparse.Namespace):
    """Prints the accuracies and plots them by distance."""
    from zoo.comparison.agreement import report

    options.check_outputs(arguments, file="the picture", pairs="the table")
    report(arguments.workdirs, arguments.split, arguments.file, arguments.pairs, arguments.label)


def add_transfer_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo transfer`."""
    add = parser.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add("--data", required=True, metavar="FILE", help="a treebank in CoNLL-U, or another text")
    add("--state", choices=POLICIES, help="state policy; default: the runs' own")
    add(
        "--unseen-weight",
        action="store_true",
        help="also mixes each run with a uniform distribution over the words of its lexicon "
        "without training text, by a weight set on its validation text",
    )
    options.add_words_to(parser)


@perplexity.on_terminal()
def run_transfer(arguments: argparse.Namespace):
    """Prints and keeps the figures of the runs on the file, and their differences."""
    from zoo.comparison.compare import report

    load = functools.partial(options.run_with_words, arguments=arguments)
    report(arguments.workdirs, arguments.data, load, arguments.state, arguments.unseen_weight)


def add_rare_words_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo rare-words`."""
    _add_runs_to(parser)


def run_rare_words(arguments: argparse.Namespace):
    """Prints and keeps the log-probabilities of rare words."""
    from zoo.evaluation import rare_words

    _judge(rare_words, arguments)


def add_slot_errors_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo slot-errors`."""
    _add_runs_to(parser)


def run_slot_errors(arguments: argparse.Namespace):
    """Prints and keeps the slot errors of realisations."""
    from zoo.papers import slot_errors

    _judge(slot_errors, arguments)


def _add_runs_to(parser: argparse.ArgumentParser):
    """Adds the folders of runs, and --split."""
    add = parser.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add(
        "--split",
        action="append",
        default=[],
        help="a split to judge; may be repeated; default: the test splits",
    )


def _judge(judgement: ModuleType, arguments: argparse.Namespace):
    """Prints and keeps a judgement of each run's splits; the module defines judge and describe."""
    from zoo.comparison import paired
    from zoo.evaluation import passport
    from zoo.evaluation.run import Run, splits_of
    from zoo.runs import output_files
    from zoo.runs.workdir import check_folders

    check_folders(arguments.workdirs)
    for workdir in arguments.workdirs:
        passport.check(workdir)
    chosen = {workdir: splits_of(workdir, arguments.split) for workdir in arguments.workdirs}
    answers: dict = {}
    for workdir, splits in chosen.items():
        run = Run.load(workdir)
        for split in splits:
            figures, scores = judgement.judge(run, split)
            output_files.show(workdir, judgement.describe(figures))
            passport.write(run, figures, scores)
            answers.setdefault(split, {})[workdir] = figures, scores
    for split, of_runs in answers.items():
        for line in paired.answer_lines(split, of_runs):
            output_files.show(line)
