"""Tables of re-ranked lists of translations, from the counts that `translation_lists` keeps."""

import functools
import re
from collections.abc import Sequence

import numpy as np

from records.cells import estimate, grid, provenance_line, read_json
from records.list_scores import MODEL_SCORE
from records.translation_lists import FOUND, LISTS, METHODS, NEW, NONE, ORACLE, TUNED, UNTUNED
from records.translations import BLEU, bleu_cell, gain
from zoo.lab.comparison.paired import format_p
from zoo.lab.evaluation import significance
from zoo.lab.table import SCORE, format_value

TESTS = {"test_2016_flickr": "test 2016", "test_2018_flickr": "test 2018"}
TRANSLATORS = {"en_cs_plain": "no attention, words", "en_cs_subwords": "attention, subwords"}
SEARCHES = {
    "50_0": "beam of 50",
    "300_0": "beam of 300",
    "50_0.5": "beam of 50, log p / length^0.5",
    "50_1": "beam of 50, log p / length",
}
# The lists whose first translations have the highest BLEU on validation.
CZECH = dict(zip(("en_cs_plain_50_1", "en_cs_subwords_50_0.5"), TRANSLATORS.values(), strict=True))
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
    """Returns a row for each model: BLEU by each method, and its gains by each over no model (of no
    model: over the untuned lists) and over the first model; around them the untuned lists and the
    oracle.

    Args:
      title: of the lists.
      choices: from the lists.
    """
    runs_by_model = group_seeds([*choices])
    models = {model: runs_by_model[model] for model in MODELS if model in runs_by_model}
    none, baseline, *_ = models

    def gains(model, opponent):
        for method in METHODS:
            tuned = tuned_counts(choices, models[model], method)
            before = choices[UNTUNED]
            if opponent != UNTUNED:
                before = tuned_counts(choices, models[opponent], method)
            yield gain_cell(tuned, before)

    rows = [[f"{title}, untuned", format_value(estimate(choices[UNTUNED], BLEU), SCORE)]]
    for model, runs in models.items():
        opponents = {none: [UNTUNED], baseline: [none]}.get(model, [none, baseline])
        figures = (bleu_cell([choices[f"{run}/{method}"] for run in runs]) for method in METHODS)
        cells = [cell for opponent in opponents for cell in gains(model, opponent)]
        rows.append([f"{title}, {MODELS[model]}", *figures, *cells])
    return [*rows, [f"{title}, oracle", bleu_cell([choices[ORACLE]])]]


def searches() -> str:
    """Makes the table of first translations by each search, and of tuning without a model."""
    rows = []
    for translator, title in TRANSLATORS.items():
        for part, text in {TUNED: "validation", **TESTS}.items():
            for search, name in SEARCHES.items():
                choices = read_choices(f"{translator}_{search}", part)
                untuned = choices[UNTUNED]
                hypothesis_words, reference_words, *_ = untuned.sum(0)
                row = [
                    f"{title}, {text}, {name}",
                    f"{hypothesis_words / reference_words:.2f}",
                    format_value(estimate(untuned, BLEU), SCORE),
                    bleu_cell([choices[ORACLE]]),
                ]
                if part != TUNED:
                    row.append(gain_cell(tuned_counts(choices, [NONE]), untuned))
                rows.append(row)
    header = ["first translations", "length ratio", "BLEU, 95 %", "oracle"]
    names = [f"{translator}_{search}" for translator in TRANSLATORS for search in SEARCHES]
    return f"{grid([*header, 'gain by tuning, 95 %'], rows)}\n{_origin(names)}"


def czech(has_new_words: bool = False) -> str:
    """Makes the table of the re-ranked Czech lists.

    Args:
      has_new_words: only of lists whose references have words that training never saw.
    """
    rows, notes = [], []
    for lists, title in CZECH.items():
        for test, name in TESTS.items():
            choices = read_choices(lists, test)
            if has_new_words:
                with np.load(LISTS / f"{lists}.npz") as archive:
                    is_new, found = archive[f"{test}/{NEW}"], archive[f"{test}/{FOUND}"].sum()
                choices = {choice: counts[is_new] for choice, counts in choices.items()}
                notes.append(f"{found} of {is_new.sum()} lists ({title}, {name})")
            rows += model_rows(f"{title}, {name}", choices)
    if has_new_words:
        note = f"A translation with such a word of its reference is in {', '.join(notes)}."
    else:
        weights = [read_json(f"lists/{lists}.json")["weights"].values() for lists in CZECH]
        is_positive = [
            names[MODEL_SCORE] > 0
            for choices in weights
            for names in choices
            if MODEL_SCORE in names
        ]
        note = f"The weight of the model is above 0 in {sum(is_positive)} of {len(is_positive)}."
    return f"{_model_table(rows, CZECH)} {note}"


def _origin(names, count=""):
    files = [f"lists/{name}.json" for name in names]
    return provenance_line("translation_lists", count, *files)


def _model_table(rows, names, count=""):
    header = ["lists, re-ranked by", *map(str.upper, METHODS)]
    for opponent in ("no model", "WE"):
        header += [f"over {opponent} by {method.upper()}, 95 %" for method in METHODS]
    note = 'Of "no model": the gain over the untuned lists.'
    return f"{grid(header, rows)}\n{note} {_origin(names, count)}"


def chinese() -> str:
    """Makes the table of the re-ranked Chinese lists."""
    rows = []
    for lists in CHINESE:
        references = len(read_choices(lists, TUNED)[UNTUNED])
        rows += model_rows(f"{references} references", read_choices(lists, "test"))
    count = len(read_choices(CHINESE[0], "test")[UNTUNED])
    return _model_table(rows, CHINESE, f"{count} lists; ")
