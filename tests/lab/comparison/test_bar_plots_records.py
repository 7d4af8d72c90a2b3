"""Pictures of what runs and records keep."""

import json

import numpy as np
import pytest

from records import cells
from tests import passports
from tests.lab.comparison.test_comparison import keep
from tests.lab.comparison.test_paired import BASE, LENGTHS, keep_scores
from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, text_report
from zoo.lab.comparison.comparison import Comparison, group_by_text
from zoo.lab.evaluation import item_scores, results, significance

FRENCH = cells.FOLDER / "french.jsonl"


def by_name(values):
    """The values by the names of recipes."""
    return {recipe.name: value for recipe, value in values.items()}


def test_agreement_is_drawn_from_a_record_by_recipe(tmp_path, monkeypatch, output):
    """Counts of docs/results.md: 93.4 % of 247 pairs of number at distance 1 for the softmax."""
    drawn_bars = {}
    monkeypatch.setattr(
        bar_plots, "draw_accuracy", lambda bars, *arguments: drawn_bars.update(by_name(bars))
    )
    runs = [f"{FRENCH}:a_{head}_{seed}" for head in ("bg_tiedw256", "ll_w256") for seed in range(3)]
    picture = str(tmp_path / "a.png")
    bar_plots.plot_agreement(runs, picture, None, ["softmax", "log-linear"])
    assert [*drawn_bars] == ["softmax, 3 seeds", "log-linear, 3 seeds"]
    (line,) = (
        line for line in output if line.split()[:5] == ["number,", "1", "softmax,", "3", "seeds"]
    )
    bar = drawn_bars["softmax, 3 seeds"]["number, 1"]
    spread = [f"[{min(bar.seeds):.1f},", f"{max(bar.seeds):.1f}]"]
    assert line.split()[5:] == ["93.4", "[89.6,", "95.9]", *spread, "247"]
    assert (bar.items, len(bar.seeds)) == (247, 3)
    assert bar.height == np.mean(bar.seeds) == pytest.approx(93.4, abs=0.05)
    with pytest.raises(UserError, match="q_bg_tied has no accuracy on pairs: python -m zoo e"):
        bar_plots.plot_agreement(
            [runs[0], f"{cells.FOLDER}/french_tuning.jsonl:q_bg_tied"], picture
        )


def agreement_of(folder, digest="abc", text="test", pairs=4):
    cases = {"number, 1": passports.accuracy(3, pairs), "number, 5+": passports.accuracy(0, 0)}
    figures = {**passports.accuracy(3, pairs), "cases": cases}
    split = f"pairs:agreement-{text}"
    changes = {
        "kind": "minimal pairs",
        "split": split,
        "figures": {**figures, "cases": cases},
        "tokens": pairs,
    }
    return keep(folder, {**changes, "data.sha256": digest, "scores": None}, name=f"pairs_{text}")


def test_agreement_is_of_one_text_which_is_named(tmp_path, output):
    picture = tmp_path / "a.svg"
    # A test of the recipe comes before a text of --data, and that before texts it was made with.
    for text, pairs in {"validation": 40, "bank.conllu": 9, "train.conllu": 8, "test": 7}.items():
        run = agreement_of(tmp_path / "a", text, text, pairs)
        bar_plots.plot_agreement([run], str(picture))
        expected = "bank.conllu" if text == "train.conllu" else text
        heading, _, splits = output[-4].partition("; --split also takes ")
        assert heading == f"pairs:agreement-{expected}"
    assert {*splits.split(", ")} == {
        f"pairs:agreement-{text}" for text in ("bank.conllu", "train.conllu", "validation")
    }
    assert output[-2].split()[-1] == "7"
    bar_plots.plot_agreement([run], str(picture), "pairs:agreement-bank.conllu")
    assert output[-4].startswith("pairs:agreement-bank.conllu; ") and output[-2].split()[-1] == "9"
    assert ">agreement pairs, bank.conllu</text>" in picture.read_text()
    with pytest.raises(UserError, match=r"agreement-x: give --split one of pairs:agreement-test, "):
        bar_plots.plot_agreement([run], str(picture), "pairs:agreement-x")


def test_runs_of_the_micro_language_are_sent_to_their_own_report(tmp_path):
    run = keep(tmp_path / "a", {})
    (tmp_path / "a" / "experiment.json").write_text('{"data": {"component": "zoo.data:Micro"}}')
    with pytest.raises(UserError, match=f"pairs: python -m zoo compare --micro {run}."):
        bar_plots.plot_agreement([run], str(tmp_path / "a.svg"))


def test_other_pairs_are_not_drawn_beside_each_other(tmp_path):
    first, second = agreement_of(tmp_path / "a"), agreement_of(tmp_path / "b", "def")
    picture = tmp_path / "a.svg"
    bar_plots.plot_agreement([first], str(picture))
    assert ">1</text>" in picture.read_text() and "4 pairs" in picture.read_text()
    with pytest.raises(UserError, match=r"not all evaluated on one text: .* DIR --agreement"):
        bar_plots.plot_agreement([first, second], str(picture))


def test_bands_have_the_intervals_of_kept_scores(tmp_path, monkeypatch, output):
    run = keep_scores(tmp_path / "a", BASE)
    path = tmp_path / "a" / "results" / "test.carried.json"
    arrays = item_scores.read(results.read_passport(path))
    is_seen = arrays["band"] == 1
    mean = float(-arrays["log_prob"][is_seen].astype(np.float64).mean())
    row = {"band": "1-9", "tokens": int(is_seen.sum()), "log_perplexity": mean}
    rows = [{**row, "perplexity": 1.0}]
    passport = json.loads(path.read_text())
    passport["figures"]["bands"] = rows
    path.write_text(json.dumps(passport))
    drawn_bars = {}
    monkeypatch.setattr(
        bar_plots, "draw_bands", lambda bars, file, *options: drawn_bars.update(by_name(bars))
    )
    bar_plots.plot_bands([run], str(tmp_path / "b.png"))
    bar = drawn_bars["a"]["1-9"]
    sums = item_scores.statistics(arrays, is_seen)
    interval = significance.bootstrap_interval(sums, item_scores.log_perplexity)
    assert bar.interval == interval and interval[0] < interval[1]
    assert output[0] == f"test, carried ({len(BASE):,} tokens)"
    assert output[2].split()[:3] == ["1-9", "a", f"{mean:.4f}"] and len(LENGTHS) == 60
    with pytest.raises(
        UserError, match="not all evaluated on dev: give --split one of test, or eva"
    ):
        bar_plots.plot_bands([run], str(tmp_path / "b.png"), "dev")


def test_bands_are_of_the_test_of_the_recipe_before_other_texts(tmp_path, monkeypatch, output):
    for split, tokens in (("data:a.txt", 18), ("validation", 40), ("test", 77)):
        changes = {"split": split, "tokens": tokens, "scores": None, "figures.bands": []}
        run = keep(tmp_path / "a", changes, name=split)
        monkeypatch.setattr(bar_plots, "draw_bands", lambda *arguments: None)
        bar_plots.plot_bands([run], str(tmp_path / "b.png"))
        # Of a single text it is that one; then --data comes before validation, and a test first.
        assert output[-3].startswith("test, " if split == "test" else "data:a.txt [")


def test_every_report_shows_the_same_text(tmp_path, monkeypatch, output):
    """The recipe's test, though the file of a text of --data comes before it."""
    for run in ("a", "b"):
        for split, tokens in (("data:bank.txt", 18), ("test", 77), ("validation", 40)):
            changes = {"split": split, "tokens": tokens, "data.sha256": split, "scores": None}
            keep(tmp_path / run, {**changes, "figures.bands": []}, name=split)
            name = split.removeprefix("data:")
            agreement_of(tmp_path / run, f"pairs {name}", name)
    runs = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert "\nranked by test, carried\n" in text_report.tables(runs)
    assert [*group_by_text(Comparison.from_paths(runs))] == [
        "test, carried",
        "data:bank.txt [data:ban], carried",
        "validation, carried",
    ]
    for plot, heading in (
        (bar_plots.plot_bands, "test, carried (77 tokens); --split also takes"),
        (bar_plots.plot_agreement, "pairs:agreement-test; --split also takes"),
    ):
        plot(runs, str(tmp_path / "picture.svg"))
        (shown,) = [line for line in output if heading in line]
        assert shown.endswith("bank.txt, " + heading.partition("test")[0] + "validation")


def test_bands_of_a_text_that_a_run_saw_are_refused(tmp_path):
    counts = {"sentences": 1, "of_sentences": 1, "tokens": 900, "of_tokens": 1000}
    seen = {"all": counts, "long": counts}
    overlap = {"letters": 30, "trained_on": seen, "selected_on": seen}
    run = keep(tmp_path / "a", {"overlap": overlap, "not_known": []})
    with pytest.raises(UserError, match="a cannot be drawn on test: it was trained on this text"):
        bar_plots.plot_bands([run], str(tmp_path / "b.png"))
