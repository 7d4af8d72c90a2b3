"""zoo agreement, zoo rare-words and zoo slot-errors: judgements of the splits of runs."""

import argparse
from types import ModuleType


def add_agreement_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo agreement`."""
    _add_runs_to(parser)
    add = parser.add_argument
    add("--file", default="agreement.png", help="the picture to write: .png, .pdf or .svg")


def run_agreement(arguments: argparse.Namespace):
    """Prints the accuracies and plots them by distance."""
    from zoo.evaluation.judgements.agreement import report

    report(arguments.workdirs, arguments.split, arguments.file)


def add_rare_words_to(parser: argparse.ArgumentParser):
    """Adds the options of `zoo rare-words`."""
    _add_runs_to(parser)


def run_rare_words(arguments: argparse.Namespace):
    """Prints and keeps the log-probabilities of rare words."""
    from zoo.evaluation.judgements import rare_words

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
    from zoo.evaluation import passport
    from zoo.evaluation.reports import paired
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
