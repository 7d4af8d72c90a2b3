"""Tables of answers: rare words, questions about countries, logical forms, and drawn texts."""

import statistics
from collections.abc import Sequence

import numpy as np

from records import rows as rows_of
from records.cells import every_run, loss, markdown, mean, passports
from zoo.evaluation import results


def rare_words() -> str:
    """Makes the table of rare numbers and names, against a word of the other kind."""
    found = {
        model: [passports(run)["pairs:rare-words-test"]["figures"]["cases"] for run in runs]
        for model, runs in rows_of.RARE_WORDS.items()
    }
    rows = []
    for case, first in next(iter(found.values()))[0].items():
        row = [case, f"{first['words']:,}"]
        for of_runs in found.values():
            losses = [
                statistics.fmean(of_run[case][name] for of_run in of_runs)
                for name in ("log_prob", "log_prob_of_other")
            ]
            shares = [100 * of_run[case]["accuracy"] for of_run in of_runs]
            row += [" and ".join(f"{nats:.2f}" for nats in losses), mean(shares, ".1f") + " %"]
        rows.append(row)
    header = ["the word, its occurrences in training", "words"]
    for model in found:
        header += [f"{model}: log p of it and of the other", "preferred"]
    runs = [run for of_model in rows_of.RARE_WORDS.values() for run in of_model]
    return markdown(header, rows, runs, "pairs:rare-words-test")


def countries() -> str:
    """Makes the table of answers to questions about countries."""
    rows = []
    for model, runs in rows_of.COUNTRIES.items():
        found = [passports(run) for run in runs]
        shares = (
            [100 * of_run[f"answers:{split}"]["figures"]["accuracy"] for of_run in found]
            for split in ("known", "test")
        )
        unseen = [-of_run["test"]["figures"]["unseen"]["log_perplexity"] for of_run in found]
        rows.append([model, *(mean(share, ".1f") + " %" for share in shares), mean(unseen, ".3f")])
    header = ["model", "countries of training", "new countries"]
    header.append("log p of words never seen in training")
    return markdown(header, rows, [run for runs in rows_of.COUNTRIES.values() for run in runs])


def forms() -> str:
    """Makes the table of forms that answer questions: GeoQuery and Overnight."""
    rows = []
    for config, runs in rows_of.FORMS.items():
        kept = [every_run()[run][1].results.values() for run in runs]
        for constrained in (False, True):
            found = [_answers(passports, constrained) for passports in kept]
            if not all(found):
                continue
            cells = []
            for split in ("answers:validation", "answers:test"):
                figures = [of_run[split]["figures"] for of_run in found]
                for count in ("right", "well_formed"):
                    shares = [100 * of_run[count] / of_run["answers"] for of_run in figures]
                    cells.append(mean(shares, ".1f") + " %")
            added = constrained and not config.endswith("constrained")
            rows.append([f"`{config}`{', `--constrain`' * added}", *cells])
    header = ["config", "validation: right", "of the grammar", "test: right", "of the grammar"]
    return markdown(header, rows, [run for runs in rows_of.FORMS.values() for run in runs])


def right(runs: Sequence[str], split: str, constrained: bool) -> np.ndarray:
    """Reads which questions each run answered right, 0 or 1, int8 [runs, questions].

    Args:
      runs: their names.
      split: such as "answers:test".
      constrained: whether the answers were decoded under the grammar.
    """
    found = []
    for run in runs:
        for place, passport in results.of_kinds(f"{every_run()[run][0]}:{run}", {"exact match"}):
            if passport["split"] == split and bool(passport["constraint"]) is constrained:
                arrays = place.read_scores(passport)
                assert arrays is not None
                found.append(arrays["right"])
    return np.array(found)


def _answers(passports, constrained):
    """Returns {split: passport} of answers decoded with a grammar, or without one."""
    return {
        passport["split"]: passport
        for passport in passports
        if passport["kind"] == "exact match" and bool(passport["constraint"]) is constrained
    }


def realisations() -> str:
    """Makes the table of names in restaurants described, with and without a background."""
    rows = []
    for config, runs in rows_of.E2E.items():
        row = [
            config,
            *(mean([loss(run, split) for run in runs], ".3f") for split in ("validation", "test")),
        ]
        figures = [passports(run)["slots-test"]["figures"] for run in runs]
        for count in ("missing", "wrong", "right"):
            row.append(mean([of_run[count] for of_run in figures], ".0f"))
        row.append(mean([100 * of_run["slot_error_rate"] for of_run in figures], ".1f") + " %")
        rows.append(row)
    header = ["config", "nats a character, validation", "test", "names left out"]
    header += ["without evidence", "texts without either", "slot error rate"]
    return markdown(header, rows, [run for runs in rows_of.E2E.values() for run in runs])
