"""Runs side by side on a text that none of them was made for, with the lexicons that they have.

A comparison on a run's own test may depend on choices that were made with that test at hand, above
all on a lexicon read off it. Here the lexicon is fixed before the text is read: out-of-vocabulary
words are <unk>.
"""

from collections.abc import Callable

from zoo.errors import UserError
from zoo.evaluation import agreement, mixtures, passport, sentence_scores
from zoo.evaluation.reports.compare import compare
from zoo.evaluation.reports.ranking import Wanted
from zoo.evaluation.run import Run
from zoo.runs import output_files
from zoo.runs.workdir import check_folders
from zoo.sources import evaluation_texts


def report(
    workdirs: list[str],
    path: str,
    load: Callable[[str], Run] = Run.load,
    state: str | None = None,
    mixed: bool = False,
    log: Callable[[str], None] = output_files.show,
):
    """Prints the figures of runs on a text, in parts, and the tests of their differences.

    The figures are kept with their passports and scores among each run's results. Of a treebank the
    accuracies on its agreement pairs are added, see `zoo.evaluation.agreement`.
    """
    check_folders(workdirs)
    for workdir in workdirs:
        passport.check(workdir)
    treebank = evaluation_texts.is_treebank(path)
    texts = set()
    for workdir in workdirs:
        run = load(workdir)
        records = [_text(run, path, state, mixed, log)]
        if treebank:
            records += _pairs(run, path, log)
        texts |= {record["data"]["sha256"] for record in records}
    log(compare(workdirs, in_parts=True, wanted=Wanted(texts)))


def _text(run, path, state, mixed, log) -> dict:
    """Judges and keeps the log-perplexity of a run."""
    (judged,) = passport.judge(run, [], path, state)
    mixture = mixtures.of_run(judged.run) if mixed else None
    record, file = passport.keep(judged, mixture)
    log(f"{file}")
    unknown = record["out_of_vocabulary"]
    if told := sentence_scores.share(record["data"]["words"], unknown, path):
        log(f"  {told}")
    return record


def _pairs(run, path, log) -> list[dict]:
    """Judges and keeps the accuracy of a run on agreement pairs; [] if the text has none."""
    try:
        record, scores, pairs = agreement.judge_file(run, path)
    except UserError as error:
        log(f"{run.path}: {error}")
        return []
    for file in agreement.keep(run, record, scores, pairs):
        log(f"{file}")
    return [record]
