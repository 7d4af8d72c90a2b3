"""Tables of answers: rare words, questions about countries, logical forms, and drawn texts."""

import statistics
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from records import cells
from records import rows as rows_of
from records.cells import (
    by_model,
    case,
    join_runs,
    losses,
    markdown,
    mean,
    nats,
    passports,
    share,
    values,
)
from zoo.lab.evaluation import item_scores
from zoo.lab.evaluation.changes.constraint import Constraint
from zoo.lab.evaluation.figures import AnswerPassport


def rare_words() -> str:
    """Makes the table of rare numbers and names, against a word of the other kind."""
    split, models = "pairs:rare-words-test", rows_of.models("rare_words")
    cases = passports(models["softmax"][0])[split].figures.cases
    rows = []
    for name, first in cases.items():
        row = [name, f"{first.pairs:,}"]
        for runs in models.values():
            figures = values(runs, split, case(name))
            log_probs = (
                statistics.fmean(run_figures.details[side] for run_figures in figures)
                for side in ("log_prob", "log_prob_of_other")
            )
            row.append(" and ".join(f"{log_prob:.2f}" for log_prob in log_probs))
            row.append(share(split, part=case(name))(runs))
        rows.append(row)
    header = ["the word, its occurrences in training", "words"]
    for model in models:
        header += [f"{model}: log p of it and of the other", "preferred"]
    return markdown(header, rows, join_runs(models), split)


def countries() -> str:
    """Makes the table of answers to questions about countries."""

    def log_prob(runs):
        return mean([-nats for nats in losses(runs, "test", attrgetter("unseen"))], ".3f")

    columns = [
        ("countries of training", share("answers:known")),
        ("new countries", share("answers:test")),
        ("log p of words never seen in training", log_prob),
    ]
    return by_model("model", rows_of.models("countries"), columns)


def forms() -> str:
    """Makes the table of forms that answer questions: GeoQuery and Overnight."""
    rows = []
    for config, runs in rows_of.FORMS.items():
        run_passports = [*map(cells.results, runs)]
        for constrained in (False, True):
            answers = [_answers(passports, constrained) for passports in run_passports]
            if not all(answers):
                continue
            row = []
            for split in ("answers:validation", "answers:test"):
                figures = [run_answers[split].figures for run_answers in answers]
                for count in ("right", "well_formed"):
                    shares = [100 * getattr(run, count) / run.answers for run in figures]
                    row.append(mean(shares, ".1f") + " %")
            option = ", `--constrain`" if constrained and not config.endswith("constrained") else ""
            rows.append([f"`{config}`{option}", *row])
    header = ["config", "validation: right", "of the grammar", "test: right", "of the grammar"]
    return markdown(header, rows, join_runs(rows_of.FORMS))


def right(runs: Sequence[str], split: str, constrained: bool) -> np.ndarray:
    """Reads which questions each run answered right, 0 or 1, int8 [runs, questions].

    Args:
      runs: their names.
      split: such as "answers:test".
      constrained: whether the answers were decoded under the grammar.
    """
    answers = []
    for run in runs:
        passport = _answers(cells.results(run), constrained).get(split)
        if passport:
            arrays = item_scores.read(passport)
            assert arrays is not None
            answers.append(arrays["right"])
    return np.array(answers)


def _answers(passports, constrained):
    """Returns {split: passport} of answers decoded with a grammar, or without one."""
    return {
        passport.split: passport
        for passport in passports
        if isinstance(passport, AnswerPassport)
        and constrained == any(isinstance(x, Constraint) for x in passport.all_changes)
    }


def realisations() -> str:
    """Makes the table of names in restaurants described, with and without a background."""

    def count(name, form=".0f", scale=1):
        def figure(figures):
            return scale * figures.details.get(name, figures.right)

        return lambda runs: mean(values(runs, "slots-test", figure), form)

    columns = [
        ("nats a character, validation", nats("validation", ".3f")),
        ("test", nats("test", ".3f")),
        ("names left out", count("missing")),
        ("without evidence", count("wrong")),
        ("texts without either", count("right")),
        ("slot error rate", lambda runs: count("slot_error_rate", ".1f", 100)(runs) + " %"),
    ]
    return by_model("config", rows_of.models("e2e"), columns)
