"""Models judged on the agreement pairs of a treebank of a few lines."""

import csv
import dataclasses
import json
import math
import pathlib
import re
import shutil

import numpy as np
import pytest

import zoo
from tests import examples
from tests.lab.evaluation.test_agreement_pairs import TRAIN, columns
from tests.lab.training import small
from zoo.data import Conllu
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.evaluation import agreement, item_scores, sentence_scores
from zoo.lab.evaluation.minimal_pairs import PairScores
from zoo.lab.evaluation.run import Run
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.workdir import Workdir


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(columns(TRAIN), encoding="utf-8")
    return Conllu(train=str(path), validation=f"{path}[:2]")


def test_accuracy_by_kind_and_distance():
    facts = [("number", 1), ("number", 4), ("number", 5), ("gender", 2), ("number", 1)]
    scores = PairScores(
        good=np.array([-1.0, -1.0, -3.0, -1.0, math.nan]),
        bad=np.array([-2.0, -1.0, -4.0, -2.0, math.nan]),
        scored=np.array([True] * 4 + [False]),
    )
    cases = agreement.by_case(
        scores, [{"phenomenon": kind, "distance": places} for kind, places in facts]
    )
    counts = {name: (case.right, case.pairs) for name, case in cases.items()}
    assert counts == {
        "number, 1": (1, 1),
        "number, 2-4": (0, 1),
        "number, 5+": (1, 1),
        "number, all": (2, 3),
        "gender, 1": (0, 0),
        "gender, 2-4": (1, 1),
        "gender, 5+": (0, 0),
        "gender, all": (1, 1),
    }
    assert math.isnan(cases["gender, 1"].accuracy)
    assert cases["number, all"].accuracy == pytest.approx(2 / 3)


def _trained(source, path, seed=0, splits=("train",)):
    """The folder of a run over the treebank whose parameters are drawn."""
    experiment = dataclasses.replace(small.experiment(), data=source)
    vocabulary = dataclasses.replace(experiment.vocabulary, splits=splits)
    experiment = dataclasses.replace(experiment, vocabulary=vocabulary)
    training = dataclasses.replace(experiment.training, seed=seed)
    experiment = dataclasses.replace(experiment, training=training)
    lexicon, _ = experiment.build()
    workdir = Workdir(path)
    workdir.claim(experiment)
    workdir.save_lexicon(lexicon)
    params = examples.random_params(experiment.model, np.random.default_rng(seed), lexicon)
    checkpoints = Checkpoints(workdir.path / "checkpoints")
    checkpoints.save("best", 1, {"params": params}, {})
    checkpoints.close()
    return workdir


def judge(*folders):
    """Judges runs on the pairs of their training text, as the command does."""
    for folder in folders:
        command_table.main(["evaluate", str(folder), "--split", "train", "--agreement"])


def test_a_run_is_judged_on_its_treebank(source, tmp_path, capsys):
    workdir = _trained(source, tmp_path / "run")
    copy = shutil.copytree(workdir.path, tmp_path / "copy")
    judge(workdir.path, copy)
    output = capsys.readouterr().out
    command_table.main(["compare", str(workdir.path), str(copy)])
    # The runs differ in nothing, so that Comparison has them as one.
    assert "pairs:agreement-train" in capsys.readouterr().out
    assert item_scores.path_of(next(copy.glob("results/*.json"))).exists()
    (result,) = workdir.path.glob("results/*.json")
    figures = json.loads(result.read_text())["figures"]
    # The four of test_pairs_with_their_distance; the third sentence has none.
    assert figures["pairs"] == 4
    pairs = {name: case["pairs"] for name, case in figures["cases"].items() if case["pairs"]}
    assert pairs == {"number, 1": 2, "number, 2-4": 2, "number, all": 4}
    right = [case["right"] for name, case in figures["cases"].items() if "all" not in name]
    assert sum(right) == figures["cases"]["number, all"]["right"] == 4 * figures["accuracy"]
    assert str(result) in output


def test_it_says_which_priors_saw_the_treebank(source, tmp_path, capsys):
    workdir = _trained(source, tmp_path / "run")
    copy = shutil.copy(source.train, tmp_path / "copy.conllu")
    command_table.main(["evaluate", str(workdir.path), "--agreement", "--data", str(copy)])
    output = capsys.readouterr().out
    assert "\n  priors that saw this text: vocabulary\n" in output
    # The run's own splits have more pairs than its files given by --data.
    note = "other forms are looked up in copy.conllu alone, and for the run's splits in all"
    assert note in output
    judge(workdir.path)
    assert "looked up" not in capsys.readouterr().out
    (result,) = workdir.path.glob("results/*copy*.json")
    assert json.loads(result.read_text())["priors_saw_this_text"] == ["vocabulary"]


def test_the_pairs_are_kept_beside_the_passport(source, tmp_path, capsys):
    workdir = _trained(source, tmp_path / "run")
    judge(workdir.path)
    (path,) = workdir.path.glob("results/*.tsv")
    assert str(path) in capsys.readouterr().out
    with open(path, encoding="utf-8", newline="") as file:
        pairs = [*csv.DictReader(file, delimiter="\t")]
    words = ("controller", "good_word", "bad_word")
    facts = ("sentence", "position", "phenomenon", "distance", *words)
    # As test_pairs_with_their_distance has them.
    assert [tuple(pair[fact] for fact in facts) for pair in pairs] == [
        ("1", "5", "number", "3", "maisons", "sont", "est"),
        ("1", "6", "number", "1", "sont", "petites", "petite"),
        ("2", "3", "number", "1", "maison", "est", "sont"),
        ("2", "4", "number", "2", "maison", "petite", "petites"),
    ]
    forms = " ".join(map(" ".join, source.read("train").sentences)).lower().split()
    for pair in pairs:
        for side in ("good", "bad"):
            assert int(pair[f"{side}_count"]) == forms.count(pair[f"{side}_word"]) > 0
        good, bad, place = pair["good"].split(), pair["bad"].split(), int(pair["position"]) - 1
        assert (good[place], bad[place]) == (pair["good_word"], pair["bad_word"])
        assert good[:place] + good[place + 1 :] == bad[:place] + bad[place + 1 :]
    run = Run.load(workdir.path)
    sentences = [pair[side].split() for pair in pairs for side in ("good", "bad")]
    scores = sentence_scores.score(run, sentences, "the pairs").word_log_prob.reshape(-1, 2)
    log_probs = [[float(pair[f"log_prob_{side}"]) for side in ("good", "bad")] for pair in pairs]
    np.testing.assert_allclose(log_probs, scores, rtol=1e-5)
    right = [pair["right"] == "TRUE" for pair in pairs]
    assert right == [good > bad for good, bad in scores]
    (result,) = workdir.path.glob("results/*.json")
    assert json.loads(result.read_text())["figures"]["right"] == sum(right)


def test_a_loaded_run_has_the_pairs_as_rows(source, tmp_path):
    workdir = _trained(source, tmp_path / "run")
    run = zoo.load(workdir.path)
    (judgement,) = agreement.judge(run, ["train"])
    rows = run.agreement("train")
    assert rows == judgement.rows and len(rows) == 4
    assert [row.right for row in rows] == judgement.scores["right"].astype(bool).tolist()
    assert (rows[0].good_word, rows[0].bad_word, rows[0].distance) == ("sont", "est", 3)
    assert (rows[0].good_count, rows[0].bad_count) == (2, 2)
    (result,) = workdir.path.glob("results/*.json")
    right = judgement.passport.figures.right
    assert json.loads(result.read_text())["figures"]["right"] == right
    file_rows = run.agreement(data=str(tmp_path / "bank.conllu"))
    assert [row[1:3] for row in file_rows] == [row[1:3] for row in rows]


def test_runs_without_agreement_pairs_are_refused(run, source):
    with pytest.raises(UserError, match="made from a treebank"):
        [*agreement.judge(run, ["test"])]
    judged = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, data=source))
    none = (
        "none of the 4 agreement pairs of validation has its words in the lexicon, such as 'sont'"
    )
    with pytest.raises(UserError, match=none):
        [*agreement.judge(judged, ["validation"])]
    words = columns(TRAIN).split("\n")
    flat = ["\t".join([*line.split("\t")[:6], *"____"]) if line else "" for line in words]
    pathlib.Path(source.train).write_text("\n".join(flat), encoding="utf-8")
    with pytest.raises(UserError, match="has no dependencies, from which agreement pairs are made"):
        [*agreement.judge(judged, ["validation"])]


def test_pairs_with_a_form_that_training_never_saw_are_apart(source, tmp_path):
    """Of the treebank's forms, the first sentence has "sont" and "petites", not "est", "petite"."""
    shortened = dataclasses.replace(source, train=f"{source.train}[:1]", validation=source.train)
    short_workdir = _trained(shortened, tmp_path / "run", splits=())
    run = Run.load(short_workdir.path)
    assert {"est", "petite"} <= {*run.lexicon.words}  # of validation
    (judgement,) = agreement.judge(run, ["validation"])
    figures = judgement.passport.figures
    assert figures.pairs == 4 and figures.both_seen.pairs == 0
    counts = [(row.good_count, row.bad_count) for row in judgement.rows]
    assert counts == [(1, 0), (1, 0), (0, 1), (0, 1)]
    assert re.search(r"\n  training saw both +- +- +0\n  priors that saw", judgement.description)
    unknown = dataclasses.replace(run.lexicon, counts=np.zeros(len(run.lexicon), np.int64))
    (judgement,) = agreement.judge(dataclasses.replace(run, lexicon=unknown), ["validation"])
    assert judgement.passport.figures.both_seen is None
    assert "saw both" not in judgement.description
    workdir = _trained(source, tmp_path / "whole")
    (judgement,) = agreement.judge(Run.load(workdir.path), ["train"])
    record = judgement.passport
    assert record.figures.both_seen.pairs == 4
    assert "saw both" not in judgement.description
    figures = dataclasses.replace(record.figures, pairs=3, right=2, skipped=1)
    record = dataclasses.replace(record, figures=figures)
    summary = " of 3 pairs; of 4 in the text, 1 have words outside the lexicon"
    assert agreement.describe(record).partition("\n")[0].endswith(summary)
