"""The part that commands share which judge splits of several runs: rare-words, slot-errors and
agreement."""

import argparse
from types import ModuleType


def add_to(parser: argparse.ArgumentParser):
    """Adds the runs and --split."""
    add = parser.add_argument
    add("workdirs", nargs="+", metavar="DIR", help="folders of trained runs")
    add("--split", action="append", default=[], help="may be repeated; default: the tests")


def run(judgement: ModuleType, arguments: argparse.Namespace):
    """Prints and keeps what a module of `zoo.evaluation.judgements` finds of each run."""
    from zoo.evaluation import passport
    from zoo.evaluation.reports import paired
    from zoo.evaluation.run import Run, splits_of
    from zoo.runs import outputs
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
            outputs.show(workdir, judgement.describe(figures))
            passport.write(run, figures, scores)
            answers.setdefault(split, {})[workdir] = figures, scores
    for split, of_runs in answers.items():
        for line in paired.answer_lines(split, of_runs):
            outputs.show(line)
