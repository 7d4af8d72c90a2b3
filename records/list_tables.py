"""Tables of re-ranked lists of translations, from the counts that `translation_lists` keeps."""

import functools
import re
from collections.abc import Sequence

import numpy as np

from records.cells import estimate, grid, mean, provenance_line, read_json
from records.translation_lists import LISTS, METHODS, NONE, ORACLE, TUNED, UNTUNED
from records.translations import BLEU, bleu_cell, gain
from zoo.lab.comparison.paired import format_p
from zoo.lab.evaluation import significance
from zoo.lab.table import SCORE, format_value

PARTS = {TUNED: "validation", "test_2016_flickr": "test 2016", "test_2018_flickr": "2018"}
TESTS = tuple(PARTS)[1:]
TRANSLATORS = {"en_cs_plain": "no attention, words", "en_cs_subwords": "attention, subwords"}
BASELINE = "czech_we_3_captions"
CHINESE = ("zh_252", "zh_126")
MODELS = {
    UNTUNED: "untuned",
    NONE: "no model",
    "czech_we_3_captions": "WE",
    "czech_ce_3_captions": "CE, seed 0",
    "czech_cwe_3_captions": "CWE",
    "czech_cwe_cwe_3_captions": "CWE-CWE",
    "czech_cwe_cwe_3_open_captions": "CWE-CWE, noise of any spelling, seed 0",
    "czech_we_3_captions_news": "WE, captions and news, seed 0",
    "we_3": "WE",
    "cwe_3": "CWE",
    "cwe_cwe_3": "CWE-CWE",
}
Choices = dict[str, np.ndarray]  # {choice: n-gram counts [lists, 10]}


@functools.cache
def read_choices(lists: str, part: str) -> Choices:
    """Reads the n-gram counts of each choice from the lists of a part.

    Args:
      lists: the name of their folder.
      part: the name of the text.
    """
    names = read_json(f"lists/{lists}.json")["choices"]
    with np.load(LISTS / f"{lists}.npz") as archive:
        counts = archive[part].astype(np.float64)
    return dict(zip(names, np.moveaxis(counts, 1, 0), strict=True))


def group_seeds(choices: Sequence[str]) -> dict[str, list[str]]:
    """Groups the runs of choices by their names without the number of the seed, {model: runs}."""
    models: dict[str, list[str]] = {}
    for choice in choices:
        run, _, method = choice.partition("/")
        if method == METHODS[0]:
            model = re.sub(r"^chinese_(even|half)_|_\d+$", "", run)
            models.setdefault(model, []).append(run)
    return models


def tuned_counts(choices: Choices, runs: Sequence[str], method: str = METHODS[0]) -> np.ndarray:
    """Returns the mean counts of the choices by the seeds of a model, [lists, 10]."""
    return np.mean([choices[f"{run}/{method}"] for run in runs], axis=0)


def gain_cell(model: np.ndarray, opponent: np.ndarray) -> str:
    """Formats the gain in BLEU over another choice, its 95 % interval, and p of the difference."""
    interval = estimate(np.hstack([opponent, model]), gain)
    p = significance.paired_test(model, opponent, BLEU)
    return f"{format_value(interval, '+.2f')}, {format_p(p)}"


def model_rows(title: str, choices: Choices) -> list[list[str]]:
    """Returns a row for each model: BLEU by each method, and the gain by the first over no model
    (of no model: over the untuned lists) and over the first model.

    Args:
      title: of the lists.
      choices: from the lists.
    """
    models = group_seeds([*choices])
    none, baseline, *_ = models
    rows = []
    for model, runs in models.items():
        tuned = tuned_counts(choices, runs)
        opponents = [choices[UNTUNED] if model == none else tuned_counts(choices, models[none])]
        if model not in (none, baseline):
            opponents.append(tuned_counts(choices, models[baseline]))
        rows.append(
            [
                f"{title}, {MODELS[model]}",
                *(bleu_cell([choices[f"{run}/{method}"] for run in runs]) for method in METHODS),
                *(gain_cell(tuned, opponent) for opponent in opponents),
            ]
        )
    return rows


# ---- figures that were kept without counts


def _rows():
    """Yields (lists of, {model: runs}, {test: its figures}) of each translator."""
    for translator, parts in read_json("translation_lists.json")["translators"].items():
        tests = {test: parts[test] for test in TESTS if test in parts}
        runs = [*next(iter(tests.values()))[METHODS[0]]["figures"]]
        yield TRANSLATORS[translator], group_seeds([f"{run}/{METHODS[0]}" for run in runs]), tests


def recorded_gain(numbers: list[float]) -> str:
    """Formats what `difference` returns."""
    *interval, p = numbers
    # Of 1,000 exchanges, which do not tell a third digit.
    return f"{format_value((*interval,), '+.2f')}, p {f'= {p:.2f}' if p >= 0.01 else '< 0.01'}"


def czech() -> str:
    """Makes the table of the re-ranked lists: BLEU of each model, and its gain over no model."""
    rows: list[list[str]] = []
    for lists, models, tests in _rows():
        fixed = {UNTUNED: [f"{lists}, untuned"], ORACLE: [f"{lists}, oracle"]}
        rows_by_model = [[f"{lists}, {MODELS[model]}"] for model in models]
        for test in tests.values():
            fixed[UNTUNED] += [format_value((*test[UNTUNED]["BLEU"],), SCORE), "", ""]
            fixed[ORACLE] += [f"{test[ORACLE]['BLEU'][0]:.2f}", "", ""]
            for row, (model, runs) in zip(rows_by_model, models.items(), strict=True):
                row += [
                    mean([test[method]["figures"][run]["BLEU"][0] for run in runs], ".2f")
                    for method in METHODS
                ]
                opponent = UNTUNED if model == NONE else NONE
                figures = test[METHODS[0]]["gains"][f"{model} | {opponent}"]
                row.append(recorded_gain(figures["all"]["BLEU"]))
        rows += [fixed[UNTUNED], *rows_by_model, fixed[ORACLE]]
    header = ["lists, re-ranked by"]
    for test in TESTS:
        header += [f"{PARTS[test]}, MIRA", "MERT", "gain by MIRA, 95 %"]
    return _recorded_table(header, rows)


def new_words() -> str:
    """Makes the table of gains, also where references have words that training never saw."""
    rows, counts = [], {}
    for lists, models, tests in _rows():
        for model in models:
            opponent = {NONE: UNTUNED, BASELINE: NONE}.get(model, BASELINE)
            row = [f"{lists}, {MODELS[model]} over {MODELS[opponent]}"]
            for name, test in tests.items():
                figures = test[METHODS[0]]["gains"][f"{model} | {opponent}"]
                row += [
                    recorded_gain(figures[group]["BLEU"]) for group in ("all", "unseen", "seen")
                ]
                row.append(recorded_gain(figures["all"]["chrF2"]))
                counts[name] = test["unseen"], test["lists"] - test["unseen"]
            rows.append(row)
    header = ["lists, gain of"]
    for name, (unseen, covered) in counts.items():
        header += [f"{PARTS[name]}, BLEU", f"{unseen} with new words", f"{covered} others", "chrF2"]
    return _recorded_table(header, rows)


def new_words_by_tuner() -> str:
    """Makes the table of gains over no model by both tuners, where references have new words."""
    rows = []
    for lists, models, tests in _rows():
        for model in [model for model in models if model != NONE]:
            gains_by_tuner = (
                test[method]["gains"][f"{model} | {NONE}"]["unseen"]["BLEU"]
                for test in tests.values()
                for method in METHODS
            )
            rows.append([f"{lists}, {MODELS[model]}", *map(recorded_gain, gains_by_tuner)])
    header = [f"{PARTS[test]}, {method.upper()}" for test in tests for method in METHODS]
    return _recorded_table(["lists, gain of", *header], rows)


def _recorded_table(header, rows):
    return f"{grid(header, rows)}\n{provenance_line('translation_lists')}"


def _origin(names, count=""):
    files = [f"lists/{name}.json" for name in names]
    return provenance_line("translation_lists", count, *files)


def _model_table(rows, names, count=""):
    header = ["lists, re-ranked by", "MIRA", "MERT", "gain over no model by MIRA, 95 %", "over WE"]
    note = 'Of "no model": the gain over the untuned lists.'
    return f"{grid(header, rows)}\n{note} {_origin(names, count)}"


def chinese() -> str:
    """Makes the table of the re-ranked Chinese lists."""
    test = read_choices(CHINESE[0], "test")
    rows = [["untuned", format_value(estimate(test[UNTUNED], BLEU), SCORE)]]
    for lists in CHINESE:
        tuned = len(read_choices(lists, TUNED)[UNTUNED])
        rows += model_rows(f"tuned on {tuned}", read_choices(lists, "test"))
    rows.append(["oracle", bleu_cell([test[ORACLE]])])
    return _model_table(rows, CHINESE, f"{len(test[UNTUNED])} lists; ")
