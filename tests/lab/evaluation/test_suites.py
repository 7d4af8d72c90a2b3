"""Test suites of SyntaxGym: formulas by hand, and suites against the surprisals of their words."""

import contextlib
import csv
import dataclasses
import io
import json

import numpy as np
import pytest

from tests.trained_run import run, trained, workdir
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.evaluation import scored_texts, suites
from zoo.lab.evaluation.results import read_answers
from zoo.sources import text_formats

__all__ = ["run", "trained", "workdir"]

REGIONS = {
    ("a", "1"): np.array([1.0, 2, 3]),
    ("a-b_c", "1"): np.array([2.0, 2.0005, 1]),
    ("a", "*"): np.array([5.0, 6, 7]),
}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("(1;%a%) > (1;%a-b_c%)", [False, False, True]),
        ("(1;%a%)<(1;%a-b_c%)", [True, True, False]),
        ("(1;%a%) = (1;%a-b_c%)", [False, True, False]),
        ("(*;%a%) - (1;%a%) - 1 > 2.5", [True, True, True]),
        ("(*;%a%) - [(1;%a%) - 1] < 5", [False, False, False]),
        ("[(1;%a%) > 1.5] & [((1;%a-b_c%)) < 2 + 0.0001] | (1;%a%) < 2", [True, False, True]),
        # & and | bind alike, from the left
        ("(1;%a%) < 2 | 1 < 2 & (1;%a%) > 2", [False, False, True]),
        ("5 - 4 - 3 < 0", [True, True, True]),
        ("( 1 ; % a % ) > 2.5", [False, False, True]),
        ("(1;%a%) - 2 > -1 + 5e-1", [False, True, True]),
    ],
)
def test_a_formula_of_three_items(formula, expected):
    value = np.broadcast_to(suites.evaluate(formula, REGIONS), 3)
    assert value.tolist() == expected


@pytest.mark.parametrize(
    "formula",
    [
        *("", "(1;%a%)", "(1;%a%) >", "(1;%a%) > 1 > 2", "1 & 2", "(1 > 2) + 1", "(1 > 2] & 1 > 2"),
        *("1 > 2 3", "__import__('os')", "(1;%a%) > x", "((1 > 2)", "1 > 2 )", "(2;%a%) > 1"),
        *("e3 > 2", "nan > 1", "(" * 5000, "- (1;%a%) < 2", "- - 1 < 2", "1 >"),
    ],
)
def test_a_formula_that_is_none_is_refused(formula):
    with pytest.raises((ValueError, RecursionError)):
        suites.evaluate(formula, REGIONS)


# Two items of two conditions, with regions of several words, without words, and of unknown words.
ITEMS = {
    "1": {"one": ["Le chat", "", "dort"], "two": ["Les chats", "voient le", "dort"]},
    "2": {"one": ["le chien", ".", "dort"], "two": ["les zèbres", "voit", "dorment"]},
}
FORMULAS = ("[(3;%one%) > (3;%two%)] & (*;%one%) < 100", "(2;%one%) = 0")


def suite(items=ITEMS, formulas=FORMULAS, metric="sum"):
    """The suite as SyntaxGym keeps it in JSON."""

    def regions(contents):
        return [{"region_number": n, "content": text} for n, text in enumerate(contents, 1)]

    return {
        "meta": {"name": "agreement", "metric": metric, "author": "x"},
        "region_meta": {"1": "Subject", "2": "Middle", "3": "Verb"},
        "predictions": [{"type": "formula", "formula": formula} for formula in formulas],
        "items": [
            {
                "item_number": int(number),
                "conditions": [
                    {"condition_name": name, "regions": regions(contents)}
                    for name, contents in conditions.items()
                ],
            }
            for number, conditions in items.items()
        ],
    }


def write(tmp_path, value):
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def surprisals(run, sentence):
    """Surprisals, in bits, of the words of a sentence, by the metric of perplexity."""
    rows = [*csv.DictReader(score_words(run, sentence), delimiter="\t")]
    return [float(row["surprisal_bits"]) for row in rows[:-1]]


def score_words(run, sentence):
    text = run.path.parent / "sentence.txt"
    text.write_text(f"{sentence}\n", encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        command_table.main(["score", str(run.path), str(text), "--words"])
    return output.getvalue().splitlines()


def expected_regions(run):
    """{(item, condition): surprisal of each region}, as sums over words of whole sentences."""
    values = {}
    for item, conditions in ITEMS.items():
        for name, contents in conditions.items():
            words = iter(surprisals(run, " ".join(filter(None, contents))))
            values[item, name] = [sum(next(words) for _ in text.split()) for text in contents]
    return values


def test_items_of_a_suite(run, tmp_path, capsys):
    path = write(tmp_path, suite())
    judgement = suites.judge(run, str(path), [])
    values = expected_regions(run)
    first = [values[item, "one"][2] > values[item, "two"][2] for item in ITEMS]
    second = [values[item, "one"][1] == 0 for item in ITEMS]
    assert second == [True, False]
    assert [(row.item, row.prediction, row.holds) for row in judgement.rows] == [
        *(("1", 1, first[0]), ("1", 2, second[0]), ("2", 1, first[1]), ("2", 2, second[1]))
    ]
    assert [row.known for row in judgement.rows] == [True, True, False, False]
    record = judgement.passport
    right = sum(a and b for a, b in zip(first, second, strict=True))
    assert (record.figures.right, record.tokens) == (right, 2)
    assert judgement.description.startswith(f"{path}: 2 items, 1 of them with unknown words\n")
    assert record.figures.details["parts"]["all, items of known words"].right == int(first[0])


def test_surprisals_of_regions(run, tmp_path):
    reading = dataclasses.replace(run.reading, boundary=None)
    text = text_formats.read_tokens(str(write(tmp_path, suite())), reading)
    scored = scored_texts.score_text(run, text, "suite", "sentences")
    known, regions = suites.read_regions(scored)
    values = expected_regions(run)
    assert known == {"1": True, "2": False}
    for name in ("one", "two"):
        expected = np.array([values[item, name] for item in ITEMS])
        for number in range(3):
            found = regions[name, str(number + 1)]
            np.testing.assert_allclose(found, expected[:, number], rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(regions[name, "*"], expected.sum(axis=1), rtol=1e-5)


def test_the_command_keeps_a_passport_and_a_table(workdir, tmp_path, capsys):
    """Also of a table, whose predictions are given."""
    table = tmp_path / "suite.csv"
    lines = ["item_number,condition_name,region_number,content"]
    for item, conditions in ITEMS.items():
        for name, contents in conditions.items():
            lines += [f"{item},{name},{n},{text}" for n, text in enumerate(contents, 1)]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    predictions = [word for formula in FORMULAS for word in ("--prediction", formula)]
    paths = ["--suites", str(write(tmp_path, suite())), "--suites", str(table)]
    command_table.main(["evaluate", str(workdir), *paths, *predictions])
    output, notes = capsys.readouterr()
    assert "perplexity" not in output and output.count(" items, 1 of them with unknown words") == 2
    assert "1 of the 16 words" in notes
    files = sorted(workdir.glob("results/suite_*.tsv"))
    assert len(files) == 2 and files[0].read_text() == files[1].read_text()
    answers = read_answers([workdir])
    assert {str(questions) for questions in answers} == {"suite:suite.json", "suite:suite.csv"}
    command_table.main(["compare", str(workdir)])
    command_table.main(["score", str(workdir), str(tmp_path / "suite.json"), "--words"])
    lines = capsys.readouterr().out.splitlines()
    table = lines[next(n for n, line in enumerate(lines) if "region_number" in line) :]
    rows = [*csv.DictReader(table, delimiter="\t")]
    assert [(row["condition_name"], row["word"]) for row in rows[:2]] == [
        ("one", "Le chat"),
        ("one", ""),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: s.update(predictions=[]), "has no predictions: give --prediction"),
        (lambda s: s.update(predictions=[{"formula": "(4;%one%) > 1"}]), "region 4 of one"),
        (lambda s: s.update(predictions=[{"type": "x"}]), "'' cannot be read"),
        (lambda s: s.update(predictions=7), "suite.json is not the JSON that is expected"),
        (lambda s: s["meta"].update(metric="mean"), "has the metric mean: write sum"),
        (lambda s: s["items"][0].pop("conditions"), r"not of a test suite .*'conditions'"),
        (lambda s: s["items"][1]["conditions"].pop(), "region 3 of two"),
        (lambda s: s.update(items=[]), "suite.json has items that are not"),
    ],
)
def test_another_suite_is_refused(run, tmp_path, change, reason):
    value = suite()
    change(value)
    with pytest.raises(UserError, match=reason):
        suites.judge(run, str(write(tmp_path, value)), [])
