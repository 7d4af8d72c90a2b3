"""One run of the trials: an ordinary run folder, judged like any other."""

import pathlib

from zoo.evaluation import item_scores, passport
from zoo.evaluation.reports import validations
from zoo.evaluation.run import Run
from zoo.experiment import Experiment
from zoo.runs.workdir import METRICS, Workdir
from zoo.training import tasks
from zoo.training.loop import Trainer


def trainer(experiment: Experiment, folder: pathlib.Path, log=print) -> Trainer:
    """Prepares the data and the trainer of a run, and writes nothing."""
    workdir = Workdir(folder)
    workdir.name(experiment)
    task = tasks.prepare(experiment)
    return Trainer(
        task,
        experiment.training,
        workdir.path,
        log=log,
        init_from=experiment.init_from,
        parallel=experiment.parallel,
    )


def best_validation(folder: pathlib.Path) -> float:
    """Reads the lowest validation log-perplexity of a run, nats per token."""
    lines = validations.read(folder / METRICS, {"step": int, "validation_log_perplexity": float})
    return min(float(line["validation_log_perplexity"]) for line in lines)


def judge(folder: pathlib.Path, split: str) -> pathlib.Path:
    """Computes the exact perplexity of a run on a split; keeps it with its passport.

    A head that spells is normalised over the words of the lexicon, as all others are.
    """
    run = Run.load(folder)
    if run.experiment.head.spells:
        run = run.renormalised()
    corpus = run.read(split)
    text, scores = run.score(corpus)
    figures = passport.of_text(run, split, corpus, text, scores)
    return passport.write(run, figures, item_scores.of_text(text, scores, run.lexicon))


def is_judged(folder: pathlib.Path, split: str) -> bool:
    """Whether a run has its figure on a split."""
    return any((folder / "results").glob(f"{split}.*.json"))
