"""Accuracies of runs by their questions, and by the options of the evaluation."""

import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from zoo.errors import UserError
from zoo.evaluation import item_scores
from zoo.evaluation.results import ANSWERS, learns, of_kinds
from zoo.runs.workdir import check_folders

# {run: (passport, its answers, None if they were not kept)}
_OfRuns = dict[Any, tuple[dict, item_scores.Arrays | None]]


class Questions(NamedTuple):
    """Questions that were answered with the same options."""

    split: str
    digest: str
    # what the evaluation changed; () for the first result of each run
    options: tuple[str, ...] = ()

    def __str__(self):
        return ", ".join((self.split, *self.options))


def read_answers(folders: Iterable[str | pathlib.Path]) -> dict[Questions, _OfRuns]:
    """Reads the accuracies of runs by their questions.

    Of the results of a run on the same questions, the one of fewest options stands under no option,
    whichever it has, so that a model that was trained under a grammar is compared with a free one.
    Each of the others stands under its options, beside every run's result under the same.
    """
    folders = [*folders]
    check_folders(folders)
    every: dict[tuple[str, str], dict] = {}  # {questions: {run: {options: its answers}}}
    names: dict = {}
    for folder in folders:
        for place, passport in of_kinds(folder, ANSWERS):
            questions = Questions(passport["split"], passport["data"]["sha256"], _options(passport))
            if other := names.get((folder, questions)):
                raise UserError(
                    f"{folder} has two results of {questions}: {other} and {place.name}; take the "
                    "one that is not meant out of its results."
                )
            names[folder, questions] = place.name
            of_runs = every.setdefault(questions[:2], {})
            answers = passport, place.read_scores(passport)
            of_runs.setdefault(folder, {})[questions.options] = answers
    found = {}
    for (split, digest), of_runs in every.items():
        first = {run: min(results, key=len) for run, results in of_runs.items()}
        others = {options for results in of_runs.values() for options in results}
        found[Questions(split, digest)] = {run: of_runs[run][first[run]] for run in of_runs}
        for options in sorted(others, key=lambda options: (len(options), options)):
            under = {
                run: results[options] for run, results in of_runs.items() if options in results
            }
            if any(first[run] != options for run in under):
                found[Questions(split, digest, options)] = under
    return found


def _options(passport):
    """Returns what the evaluation changed in a model as it was trained, one string a change."""
    words, trained = passport["lexicon"]["words"], passport["lexicon"].get("of_training")
    spread = "<unk> spread over new words"
    if letters := passport.get("spread_letters"):
        spread += f" by {letters}-grams of letters"
    learning = learns(passport)
    changes = {
        "constrained": passport["constraint"],
        f"lexicon {words[:8]}": trained and trained["words"] != words,
        spread: passport["spread_unknown"] or letters,
        "renormalised": passport["renormalised"],
        f"learning from the text by {learning}": learning,
    }
    return tuple(option for option, changed in changes.items() if changed)
