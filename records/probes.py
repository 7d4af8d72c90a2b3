"""Judgements of single papers' questions, printed, kept and compared for each run and split.

`records.rare_words` and `records.slot_errors` are such judgements.
"""

from collections.abc import Callable

from zoo.lab.commands import options
from zoo.lab.commands.options import Option
from zoo.lab.comparison import paired
from zoo.lab.evaluation import item_scores, passport
from zoo.lab.evaluation.figures import AccuracyPassport
from zoo.lab.evaluation.results import read_passport
from zoo.lab.evaluation.run import Run, splits_of
from zoo.lab.runs import output_files
from zoo.lab.runs.workdir import check_folders

OPTIONS = (
    Option("runs DIR ...", "folders of trained runs"),
    Option("--split NAME ...", "a split to judge; default: the tests"),
)


def main(
    about: str,
    judge: Callable[[Run, str], tuple[AccuracyPassport, item_scores.Arrays]],
    describe: Callable[[AccuracyPassport], str],
):
    """Runs a judgement by the command line: folders of runs, and --split.

    Args:
      about: the docstring of the program.
      judge: returns (the passport of a run's figures on a split, which answers are right).
      describe: formats a passport as text.
    """
    parser = options.Parser(description=about.partition("\n")[0])
    options.add_to(parser, OPTIONS, "probe")
    arguments = options.parse(parser)
    check_folders(arguments.runs)
    for folder in arguments.runs:
        passport.check(folder)
    answers: dict = {}
    for folder in arguments.runs:
        run = Run.load(folder)
        for split in splits_of(folder, arguments.split):
            record, scores = judge(run, split)
            output_files.show(folder, describe(record))
            result = passport.write(run, record, scores)
            answers.setdefault(split, {})[folder] = read_passport(result)
    for split, answers_by_run in answers.items():
        output_files.show(*paired.answer_lines(split, answers_by_run))
