"""Tables of re-ranked lists of translations."""

import re

from records.cells import grid, mean, provenance_line, read_json
from records.translation_lists import METHODS, NONE, UNTUNED
from zoo.lab.table import SCORE, format_value

TESTS = ("test_2016_flickr", "test_2018_flickr")
TRANSLATORS = {"en_cs_plain": "no attention, words", "en_cs_subwords": "attention, subwords"}
YEARS = dict(zip(TESTS, ("test 2016", "2018"), strict=True))
BASELINE = "czech_we_3_captions"
MODELS = {
    "untuned": "untuned",
    "none": "no model",
    BASELINE: "WE",
    "czech_ce_3_captions": "CE, seed 0",
    "czech_cwe_3_captions": "CWE",
    "czech_cwe_cwe_3_captions": "CWE-CWE",
    "czech_cwe_cwe_3_open_captions": "CWE-CWE, noise of any spelling, seed 0",
    "czech_we_3_captions_news": "WE, captions and news, seed 0",
}
CHINESE_BASELINE = "we_3"
CHINESE_MODELS = {NONE: "no model", CHINESE_BASELINE: "WE", "cwe_3": "CWE", "cwe_cwe_3": "CWE-CWE"}


def group_seeds(runs: list[str]) -> dict[str, list[str]]:
    """Groups runs by their names without the number of the seed, {model: runs}."""
    models: dict[str, list[str]] = {}
    for run in runs:
        models.setdefault(re.sub(r"_\d+$", "", run), []).append(run)
    return models


def _rows():
    """Yields (lists of, {model: runs}, {test: its figures}) of each translator."""
    for translator, parts in read_json("translation_lists.json")["translators"].items():
        tests = {test: parts[test] for test in TESTS if test in parts}
        runs = [*next(iter(tests.values()))[METHODS[0]]["figures"]]
        yield TRANSLATORS[translator], group_seeds(runs), tests


def gain_cell(numbers: list[float]) -> str:
    """Formats what `difference` returns."""
    *gain, p = numbers
    # Of 1,000 exchanges, which do not tell a third digit.
    return f"{format_value((*gain,), '+.2f')}, p {f'= {p:.2f}' if p >= 0.01 else '< 0.01'}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    return f"{grid(header, rows)}\n{provenance_line('translation_lists')}"


def czech() -> str:
    """Makes the table of the re-ranked lists: BLEU of each model, and its gain over no model."""
    rows: list[list[str]] = []
    for lists, models, tests in _rows():
        fixed = {UNTUNED: [f"{lists}, untuned"], "oracle": [f"{lists}, oracle"]}
        model_rows = [[f"{lists}, {MODELS[model]}"] for model in models]
        for test in tests.values():
            fixed[UNTUNED] += [format_value((*test[UNTUNED]["BLEU"],), SCORE), "", ""]
            fixed["oracle"] += [f"{test['oracle']['BLEU'][0]:.2f}", "", ""]
            for row, (model, runs) in zip(model_rows, models.items(), strict=True):
                row += [
                    mean([test[method]["figures"][run]["BLEU"][0] for run in runs], ".2f")
                    for method in METHODS
                ]
                opponent = UNTUNED if model == NONE else NONE
                gain = test[METHODS[0]]["gains"][f"{model} | {opponent}"]
                row.append(gain_cell(gain["all"]["BLEU"]))
        rows += [fixed[UNTUNED], *model_rows, fixed["oracle"]]
    header = ["lists, re-ranked by"]
    for test in TESTS[: (len(rows[0]) - 1) // 3]:
        header += [f"{YEARS[test]}, MIRA", "MERT", "gain by MIRA, 95 %"]
    return _table(header, rows)


def new_words() -> str:
    """Makes the table of gains, also where references have words that training never saw."""
    rows, counts = [], {}
    for lists, models, tests in _rows():
        for model in models:
            opponent = {NONE: UNTUNED, BASELINE: NONE}.get(model, BASELINE)
            row = [f"{lists}, {MODELS[model]} over {MODELS[opponent]}"]
            for name, test in tests.items():
                gain = test[METHODS[0]]["gains"][f"{model} | {opponent}"]
                row += [gain_cell(gain[group]["BLEU"]) for group in ("all", "unseen", "seen")]
                row.append(gain_cell(gain["all"]["chrF2"]))
                counts[name] = test["unseen"], test["lists"] - test["unseen"]
            rows.append(row)
    header = ["lists, gain of"]
    for name, (unseen, covered) in counts.items():
        header += [f"{YEARS[name]}, BLEU", f"{unseen} with new words", f"{covered} others", "chrF2"]
    return _table(header, rows)


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
            rows.append([f"{lists}, {MODELS[model]}", *map(gain_cell, gains_by_tuner)])
    header = [f"{YEARS[test]}, {method.upper()}" for test in tests for method in METHODS]
    return _table(["lists, gain of", *header], rows)


def chinese() -> str:
    """Makes the table of the re-ranked lists."""
    rows: list[list[str]] = []
    for way in read_json("chinese_lists.json")["ways"].values():
        untuned, oracle = (way[selection]["BLEU"] for selection in (UNTUNED, "oracle"))
        rows = rows or [["untuned", format_value((*untuned,), SCORE)]]
        mira = way[METHODS[0]]
        for model, runs in group_seeds([*mira["figures"]]).items():
            row = [f"tuned on {way['tuned']}, {CHINESE_MODELS[model]}"]
            for method in METHODS:
                figures = way[method]["figures"]
                row.append(mean([figures[run]["BLEU"][0] for run in runs], ".2f"))
            for opponent in (NONE, CHINESE_BASELINE):
                opponent = UNTUNED if model == NONE == opponent else opponent
                gain = mira["gains"].get(f"{model} | {opponent}")
                row.append(gain_cell(gain["all"]["BLEU"]) if gain else "")
            rows.append(row)
    rows.append(["oracle", f"{oracle[0]:.2f}"])
    count = f"{way['lists']} lists; "
    header = ["lists", "MIRA", "MERT", "gain over no model by MIRA, 95 %", "over WE"]
    return (
        f'{grid(header, rows)}\nOf "no model": the gain over the untuned lists. '
        f"{provenance_line('chinese_lists', count)}"
    )
