"""Documented figures are those of the passports of record."""

import dataclasses
import functools
import json
import math
import re
import shutil

import numpy as np
import pytest

import configs
from records import cells, claims, keep, pictures, tables
from tests import passports
from tests.marks import slow
from zoo import configuration
from zoo.base.trust import permissions
from zoo.errors import UserError
from zoo.lab.comparison import text_report
from zoo.lab.evaluation import item_scores, records, results, significance

FILES = sorted(cells.FOLDER.glob("*.jsonl"))


# All but each fourth, for many resample intervals.
LATER = [name for place, name in enumerate(sorted(tables.TABLES)) if place % 4]
STANDING = re.compile(r"<!-- table (\w+)[^\n]*-->\n(.*?) <!-- end of table -->", re.DOTALL)


@pytest.mark.parametrize("standing", [LATER, *slow([])], ids=["some", "all"])
def test_the_page_has_the_tables_that_records_make(monkeypatch, standing):
    pages = [path.read_text(encoding="utf-8") for path in tables.PAGES]
    text_by_name = dict(STANDING.findall("".join(pages)))
    assert text_by_name.keys() == tables.TABLES.keys()
    for name in standing:
        monkeypatch.setitem(tables.TABLES, name, functools.partial(str, text_by_name[name]))
    assert tables.with_tables(pages) == pages, "run make tables"
    origin_lines = re.findall(r"From (?:the passports in )?records/\w", "".join(pages))
    without_origin = {*claims.tables(), "accuracies"}
    assert len(tables.TABLES) - len(without_origin) == len(origin_lines)


@pytest.mark.slow
def test_the_pictures_are_those_of_the_records(tmp_path):
    """Texts and bars: other versions of matplotlib place them otherwise."""
    pictures.draw(tmp_path)
    words = {
        "agreement": {"agreement pairs, test", "247 pairs", "94", "chance"},
        "treebanks": {"Indonesian", "Estonian", "nats a token below the tied softmax"},
    }
    for name in ("agreement", "agreement_dark", "treebanks", "treebanks_dark"):
        paths = (folder / f"{name}.svg" for folder in (pictures.FOLDER, tmp_path))
        expected, redrawn = (path.read_text() for path in paths)
        texts = [re.findall(r">([^<>\n]+)</text>", svg) for svg in (expected, redrawn)]
        assert texts[0] == texts[1]
        light, _, is_dark = name.partition("_")
        assert words[light] < {*texts[0]}
        if is_dark:
            assert pictures.dark((pictures.FOLDER / f"{light}.svg").read_text()) == expected
            assert "#ffffff" not in expected and "#0d1117" in expected


def test_a_changed_figure_is_another_table(monkeypatch):
    page, real = "<!-- table micro -->\n<!-- end of table -->", cells.passports
    monkeypatch.setattr(tables, "TABLES", {"micro": tables.micro})
    pages = tables.with_tables([page])
    assert tables.with_tables(pages) == pages

    def change_loss(run, *learning):
        splits = real(run, *learning)
        if run == "micro_softmax_1":
            figures = splits["test"].figures
            changed = dataclasses.replace(figures, log_perplexity=figures.log_perplexity + 0.01)
            splits["test"] = dataclasses.replace(splits["test"], figures=changed)
        return splits

    monkeypatch.setattr(cells, "passports", change_loss)
    assert tables.with_tables(pages) != pages
    with pytest.raises(UserError, match="put them back"):
        tables.with_tables(["no table"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_record_says_where_it_comes_from(file):
    for record in records.read(file):
        assert record.experiment["component"] == "zoo:Experiment"
        assert record.results
        for passport in results.record_passports(file, record):
            keep.check(passport, passport.place.name)
            assert passport.machine.processor and passport.machine.device
            assert passport.training.seed is not None
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", passport.date)


def test_each_run_of_a_record_can_be_trained_again(monkeypatch):
    """The recipe that train.py reads is the recorded one, field by field."""
    monkeypatch.setattr(permissions, "_user_names", {"configs.lm1b_full:FilledText"})
    paths = records.expand(map(str, FILES))
    assert len(paths) == len(cells.read_records())
    for path in paths[:: len(paths) // 20]:
        recipe = configuration.from_json(records.record_of(path).experiment)
        assert configuration.to_json(configs.load(path)) == configuration.to_json(recipe)


def test_a_recorded_recipe_is_not_trusted(tmp_path):
    """Nothing is imported for a record of somebody else."""
    record = records.read(FILES[0])[0]
    record.experiment["model"]["head"] = {"component": "somebody:Head"}
    path = tmp_path / "theirs.jsonl"
    records.write(path, [record], {})
    with pytest.raises(UserError, match=r"theirs\.jsonl:.* has the component somebody:Head"):
        configs.load(f"{path}:{record.run}")
    with pytest.raises(UserError, match=r"theirs\.jsonl has several runs: name one of them"):
        configs.load(str(path))


def test_records_have_each_run_once():
    names = [record.run for file in FILES for record in records.read(file)]
    assert len(names) == len({*names}) == len(cells.read_records())


def test_records_are_compared_as_runs_are():
    file = str(cells.FOLDER / "micro.jsonl")
    lines = text_report.tables([file]).splitlines()
    assert lines[1].startswith("micro_log_linear, 3 seeds ")
    assert lines[2].startswith("micro_softmax, 3 seeds ")
    softmax_run, log_linear_run = (f"{file}:micro_{head}_0" for head in ("softmax", "log_linear"))
    assert (
        text_report.tables([softmax_run, log_linear_run]).splitlines()[1].split()[0]
        == "micro_log_linear_0"
    )
    with pytest.raises(UserError, match=r"micro\.jsonl has no run micro_gru: name one of micro_l"):
        text_report.tables([f"{file}:micro_gru"])
    with pytest.raises(UserError, match="are one folder: give each run once"):
        text_report.tables([file, softmax_run])


def test_seeds_of_records_without_scores_are_compared_by_their_seeds(tmp_path):
    """By hand, of 3.1154, 3.1197, 3.1208 and 3.4119, 3.4229, 3.4180: means 3.1186 and 3.4176,
    variances 8.3e-6 and 3.0e-5, so t = 0.2990 / sqrt(3.9e-5 / 3) = 83 of 3 degrees of freedom."""
    lines = text_report.tables([shutil.copy(cells.FOLDER / "micro.jsonl", tmp_path)])
    assert re.search(
        r"  micro_log_linear, 3 seeds is below micro_softmax, 3 seeds by 0\.2990 nats "
        r"\(p < 0\.001 by 3 and 3 seeds\)",
        lines,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"a\.jsonl, line 1 is not a run of a record"),
        ('{"run": "a", "experiment": {}}', r"results is missing or null"),
        ('{"run": "a", "experiment": {}, "results": {}}\n' * 2, "line 2: a stands there twice"),
    ],
)
def test_a_damaged_record_is_an_error_of_the_user(text, message, tmp_path):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(UserError, match=message):
        text_report.tables([str(tmp_path / "a.jsonl")])
    with pytest.raises(UserError, match=r"b\.jsonl cannot be read"):
        text_report.tables([str(tmp_path / "b.jsonl")])


PASSPORT = passports.change(
    passports.PERPLEXITY,
    {
        "figures": {"log_perplexity": 1.5, "perplexity": math.exp(1.5)},
        "training": {
            "seed": 3,
            "recipe_but_seed": "r",
            "made_with": {"revision": "a" * 40, "versions": {}},
        },
        "revision": "b" * 40,
        "data": {"path": "ptb/test.txt", "sha256": "c"},
        "command": ["/usr/bin/evaluate.py", "runs/a"],
        "tokens": 3,
    },
)


def make_run(folder, **changes):
    (folder / "results").mkdir(parents=True)
    (folder / "experiment.json").write_text("{}")
    path = folder / "results" / "test.carried.json"
    log_prob = np.asarray([-1.0, -2.0, -1.5]) - changes.pop("worse", 0)
    arrays = {
        "log_prob": log_prob.astype(np.float32),
        "band": np.asarray([1, 1, 0], np.int8),
        "lengths": np.asarray([2, 1]),
    }
    item_scores.write(path, arrays)
    passport = passports.change(PASSPORT, {"scores": item_scores.digest(arrays), **changes})
    path.write_text(json.dumps(passport))
    return folder, arrays


def test_a_run_is_kept_with_its_interval_and_its_scores(tmp_path):
    run, arrays = make_run(tmp_path / "mine")
    file = tmp_path / "table.jsonl"
    assert keep.keep(file, [run]) == ["mine"]
    passport = records.record_of(f"{file}:mine").results["test.carried"]
    interval = significance.bootstrap_interval(
        item_scores.statistics(arrays), item_scores.log_perplexity
    )
    assert passport["figures"]["interval"] == [*interval] and not math.isnan(interval[0])
    assert passport["command"] == ["evaluate.py", "runs/a"]
    with np.load(tmp_path / "table.npz") as archive:
        np.testing.assert_array_equal(archive["mine/test.carried/log_prob"], arrays["log_prob"])
        np.testing.assert_array_equal(archive["mine/test.carried/lengths"], [2, 1])


def test_runs_of_a_record_are_compared_by_their_scores_and_replaced(tmp_path):
    file = tmp_path / "table.jsonl"
    for name, offset in (("one", 0), ("other", 1.0)):
        figures = {"log_perplexity": 1.5 + offset, "perplexity": math.exp(1.5 + offset)}
        training = {**PASSPORT["training"], "recipe_but_seed": name}
        keep.keep(
            file, [make_run(tmp_path / name, worse=offset, figures=figures, training=training)[0]]
        )
    folder_table = text_report.tables([str(tmp_path / "one"), str(tmp_path / "other")])
    record_table = text_report.tables([str(file)])
    assert record_table == folder_table
    assert "by 2 sentences" in record_table and "1.0000 [1.0000, 1.0000] nats apart" in record_table
    before = file.read_bytes()
    keep.keep(file, [tmp_path / "one"])
    assert file.read_bytes() == before
    assert [record.run for record in records.read(file)] == ["one", "other"]
    with np.load(tmp_path / "table.npz") as archive:
        arrays = dict(archive)
    arrays["one/test.carried/log_prob"] += 1
    np.savez(tmp_path / "table.npz", **arrays)
    with pytest.raises(UserError, match=r"table\.npz has the scores of another .* one/test\.carr"):
        text_report.tables([str(file)])
    (tmp_path / "table.npz").write_bytes(b"PK\3\4 no archive")
    with pytest.raises(UserError, match=r"table\.npz cannot be read \(.*: put back a copy of it"):
        keep.keep(file, [tmp_path / "one"])
    assert file.read_bytes() == before


def add_answers(folder, right):
    """Adds the answers to ten questions to a run's results."""
    path = folder / "results" / "pairs.sentences.json"
    arrays = item_scores.from_answers(np.arange(10) < right)
    item_scores.write(path, arrays)
    own = {name: PASSPORT[name] for name in ("training", "revision", "data", "command")}
    questions = {"split": "pairs:a", "tokens": 10, "figures": passports.accuracy(right, 10)}
    changes = {**own, **questions, "scores": item_scores.digest(arrays)}
    path.write_text(json.dumps(passports.change(passports.PAIRS, changes)))


def test_a_record_has_all_that_parts_and_mcnemars_test_need(tmp_path):
    """Two seeds of two recipes: the lines of the record are those of the runs."""
    file, folders = tmp_path / "table.jsonl", []
    for recipe, offset in (("one", 0.0), ("other", 1.0)):
        for seed in (0, 1):
            worse = offset + seed / 8
            loss = {"log_perplexity": 1.5 + worse, "perplexity": math.exp(1.5 + worse)}
            seen_band = {"band": "1-9", "tokens": 2, **loss}
            unseen_band = {"band": "unseen", "tokens": 1, **loss}
            mixture = {"weight": 0.25, "words": 4, "tuned_on": None, "log_perplexity": 1.0 + worse}
            figures = {**loss, "bands": [unseen_band, seen_band], "mixture": mixture}
            training = {**PASSPORT["training"], "recipe_but_seed": recipe, "seed": seed}
            folder = tmp_path / f"{recipe}_{seed}"
            make_run(folder, worse=worse, figures=figures, training=training)
            add_answers(folder, 9 if recipe == "one" else 1)
            folders.append(folder)
    keep.keep(file, folders)
    folder_table = text_report.tables([*map(str, folders)], in_parts=True)
    record_table = text_report.tables([str(file)], in_parts=True)
    assert record_table == folder_table
    for title in ("words seen in training", "words never seen in training", "all words, with"):
        assert "by 2 and 2 seeds" in " ".join(record_table.partition(f"  {title}")[2].split()[:40])
    assert "right alone, p = 0.00781" in record_table  # 2 / 2^8
    single = [f"{file}:{name}" for name in ("one_0", "other_0")]
    pair_table = text_report.tables(single, in_parts=True)
    folder_pair_table = text_report.tables([str(folders[0]), str(folders[2])], in_parts=True)
    assert pair_table == folder_pair_table
    assert "8 and 0 of 10 right alone" in pair_table


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"revision": "b" * 40 + "-dirty"}, "code that was not committed"),
        ({"training.made_with": None}, "code that was not committed"),
        ({"data": {"path": "/home/me/test.txt"}}, "names /home/me/test.txt: judge the run by"),
        ({"command": ["evaluate.py", "/home/me/run"]}, "names /home/me/run"),
    ],
)
def test_a_run_that_nobody_can_repeat_is_not_kept(changes, message, tmp_path):
    run, _ = make_run(tmp_path / "mine", **changes)
    with pytest.raises(UserError, match=message):
        keep.keep(tmp_path / "table.jsonl", [run])


def test_what_is_no_run_or_no_record_is_not_kept(tmp_path):
    with pytest.raises(UserError, match="has no results: evaluate it first"):
        keep.keep(tmp_path / "table.jsonl", [tmp_path])
    with pytest.raises(UserError, match=r"give one that ends with \.jsonl"):
        keep.keep(tmp_path / "table", [tmp_path])


def test_losses_of_sentences_add_up_to_the_figures_of_variants():
    files = sorted((cells.FOLDER / "ptb_strong").glob("*.npz"))
    assert files
    for file in files:
        variants = json.loads(file.with_suffix(".json").read_text())["variants"].values()
        with np.load(file) as arrays:
            for split in ("validation", "test"):
                nats = arrays[f"{split}/nats"].sum(1, np.float64) / arrays[f"{split}/tokens"].sum()
                np.testing.assert_allclose(
                    nats, [variant[split] for variant in variants], rtol=1e-6
                )
