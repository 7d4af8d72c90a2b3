"""The table and the sentence, of runs whose figures are known."""

import json
import math

import numpy as np
import pytest

from tests.lab.comparison.test_paired import BASE, FREE, LENGTHS, keep_scores, worse
from tests.lab.training import small
from zoo.errors import UserError
from zoo.lab.comparison.paired import Difference, GroupLosses
from zoo.lab.own_text import summary as trial_summary
from zoo.lab.own_text.plan import Budget, HeadPlan, Plan
from zoo.lab.own_text.summary import CurvePoint, HeadRow, Summary

START = math.log(1000)  # 6.908 nats, 95 % of it 6.562
TIE = Difference(0.01, (-0.02, 0.04), 60, 0.4, math.nan)
APART = Difference(0.2, (0.1, 0.3), 60, 0.001, 0.01)
UNDECIDED = APART._replace(p_of_seeds=0.2)


def row(name, perplexity, difference=None, parameters=1000, seeds=1):
    losses = (math.log(perplexity),) * seeds
    interval = math.log(perplexity - 1), math.log(perplexity + 1)
    runs = GroupLosses(name, losses, (), interval)
    return HeadRow(runs, parameters, 2.0, 600, 1.0, 5_000_000, 0.003, (), difference)


def make_summary(*rows):
    return Summary(rows, "test", 1234, (), {}, START)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("softmax", 50)], "Take softmax: perplexity 50.00 on test after 1 epoch."),
        (
            [row("log_linear", 46.9), row("softmax", 50, APART)],
            "Take log_linear: perplexity 46.90 on test after 1 epoch, the lowest; "
            "softmax (50.00) is worse.",
        ),
        (
            [row("log_linear", 46.9), row("tied", 47.5, TIE, parameters=400)],
            "Take log_linear: perplexity 46.90 on test after 1 epoch, the lowest; "
            "tied (47.50, 0.40 times the parameters) is a tie with it.",
        ),
        (
            [row("a", 46.9), row("b", 47, TIE), row("c", 47.5, UNDECIDED), row("d", 60, APART)],
            "Take a: perplexity 46.90 on test after 1 epoch, the lowest; b (47.00) is a tie with "
            "it; c (47.50) is undecided, for seeds differ as much; d (60.00) is worse.",
        ),
        (
            [
                *(row("a", 46.9), row("b", 47, TIE, 1050), row("c", 48, TIE)),
                *(row("d", 60, APART), row("e", math.inf, None), row("f", 1234.5, APART)),
            ],
            "Take a: perplexity 46.90 on test after 1 epoch, the lowest; b (47.00) and c (48.00) "
            "are ties with it; d (60.00), e (inf) and f (1,234.50) are worse.",
        ),
    ],
)
def test_the_sentence(rows, expected):
    assert trial_summary.summary_sentence(make_summary(*rows)) == expected


def curve(*losses):
    """Validations at steps 10, 20, ..."""
    return tuple(CurvePoint(10 * n, 0.1 * n, (loss,)) for n, loss in enumerate(losses, 1))


def test_the_sentence_tells_which_curves_still_fall():
    # Of 100 steps the last fifth begins at step 80: 5.50 - 5.25 nats.
    steep = row("a", 46.9)._replace(curve=curve(*[6.0] * 7, 5.5, 5.4, 5.25), epochs=1.5)
    flat = row("b", 60, APART)._replace(curve=curve(*[6.0] * 7, 5.5, 5.4, 5.495))
    sentence = trial_summary.summary_sentence(make_summary(steep, flat))
    assert sentence.startswith("Take a: perplexity 46.90 on test after 1.5 epochs, the lowest")
    assert sentence.endswith(
        "b (60.00) is worse. Validation still fell in the last fifth of training, of a by 0.25 "
        "nats (step 600 after 1.5 epochs): after longer training the order may be another."
    )


@pytest.mark.parametrize(
    ("epochs", "duration"),
    [
        (60 / 429, "0.14 epochs"),
        (1.0, "1 epoch"),
        (0.004, "0.004 epochs"),
        (1234.5, "1,234 epochs"),
    ],
)
def test_the_sentence_tells_the_epochs_of_training(epochs, duration):
    expected = f"Take a: perplexity 46.90 on test after {duration}."
    assert (
        trial_summary.summary_sentence(make_summary(row("a", 46.9)._replace(epochs=epochs)))
        == expected
    )


def test_no_head_wins_where_one_predicts_like_a_uniform_guess():
    for loss, is_won in ((6.57, False), (6.55, True)):
        rows = row("a", 46.9)._replace(curve=curve(5.0)), row("b", 60, APART)
        rows = rows[0], rows[1]._replace(curve=curve(loss))
        sentence = trial_summary.summary_sentence(make_summary(*rows))
        assert sentence.startswith("Take a: ") == is_won
    sentence = trial_summary.summary_sentence(
        make_summary(rows[0], rows[1]._replace(curve=curve(6.9)))
    )
    assert sentence.startswith(
        "No winner yet, for b has hardly left the loss of a uniform guess (6.91 nats): a: "
        "perplexity 46.90 on test after 1 epoch, the lowest; b (60.00) is worse."
    )


def test_unequal_training_is_told_in_the_sentence():
    def summary_text(*budgets):
        rows = [row("importance", 50), row("softmax", 60, APART), row("adaptive", 70, APART)]
        pairs = zip(rows, budgets, strict=True)
        return make_summary(*(row._replace(minutes=m, steps=s) for row, (m, s) in pairs)).text()

    sentence = summary_text((0.64, 219), (0.35, 20), (0.15, 29)).splitlines()[-1]
    assert sentence.startswith(
        "After unequal training, which may decide (importance 0.64, softmax 0.35, adaptive 0.15 "
        "minutes), take importance: perplexity 50.00 on test after 1 epoch, the lowest; softmax "
        "(60.00)"
    )
    # Equal minutes give a slower head fewer steps, and --steps equal steps in other minutes.
    for fair in (((0.3, 219), (0.31, 20), (0.29, 29)), ((0.64, 20), (0.35, 20), (0.15, 20))):
        assert "\nTake importance: " in summary_text(*fair)


def test_the_table():
    rows = row("log_linear", 46.9, seeds=3), row("tied", 47.5, TIE), row("nce", 60, APART)
    assert (
        make_summary(*rows[:1], row("b", 47, UNDECIDED))
        .text()
        .split("\n")[3]
        .endswith(", undecided")
    )
    lines = (
        make_summary(*rows)
        ._replace(notes=("a note",), failed={"cnn": "it diverged."})
        .text()
        .split("\n")
    )
    assert lines[0] == "test: 1,234 tokens, perplexity"
    assert lines[1].split()[:4] == ["head", "perplexity", "95", "%"]
    assert "46.90  [45.90, 47.90]  [46.90, 46.90]       1,000     2.00    200.0   5" in lines[2]
    assert lines[2].endswith("the lowest")
    assert lines[3].endswith(f"+{math.log(47.5 / 46.9):.4f} nats, a tie")
    assert lines[4].endswith(f"+{math.log(60 / 46.9):.4f} nats")
    assert lines[5:7] == ["a note", "cnn is left out: it diverged."]
    assert lines[-1].startswith("Take log_linear: ")
    assert max(map(len, lines[:5])) <= 120


def keep_run(folder, log_prob, seed=0, **changes):
    """A run that was trained for three validations, and judged."""
    keep_scores(folder, log_prob, recipe=folder.parent.name, seed=seed, **FREE, **changes)
    lines = [
        {
            "step": step,
            "validation_log_perplexity": 5.0 - step / 100,
            "seconds": 0.6 * step,
        }
        for step in (10, 20, 30)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    recipe = {
        "training": {"optimizer": {"learning_rate": 0.003}},
        "model": {"head": {"component": "zoo.heads:Softmax"}},
    }
    (folder / "experiment.json").write_text(json.dumps(recipe))
    return folder


@pytest.fixture
def plan(tmp_path):
    plan = Plan(tmp_path / "trials", small.experiment(), Budget(None, 30))
    plan.heads = {name: HeadPlan(30, 214, 4_000_000, {}, 1.0) for name in ("best", "near", "far")}
    return plan


def test_runs_are_compared(tmp_path, plan):
    folders = {
        "far": [keep_run(tmp_path / f"far/{seed}", worse(0.5, 0.2, seed), seed) for seed in (1, 2)],
        "best": [keep_run(tmp_path / f"best/{seed}", worse(0, 0.2, seed), seed) for seed in (3, 4)],
        "near": [
            keep_run(tmp_path / f"near/{seed}", worse(0.002, 0.2, seed), seed) for seed in (5, 6)
        ],
    }
    summary = trial_summary.summarise(folders, "test", plan, {}, START)
    order = [row.runs.name for row in summary.rows]
    assert order[2] == "far" and {*order[:2]} == {"best", "near"}
    tie, far = summary.rows[1:]
    assert (tie.verdict, far.verdict) == ("a tie", "worse") and summary.rows[0].difference is None
    first = -np.float32(worse(0.5, 0.2, 1)).mean(dtype=np.float64)
    assert far.runs.losses[0] == pytest.approx(first, abs=1e-3)
    assert far.runs.interval[0] < far.runs.loss < far.runs.interval[1]
    assert (far.steps, far.minutes, far.step_seconds) == (30, pytest.approx(0.3), 0.6)
    assert [point.step for point in far.curve] == [10, 20, 30]
    assert far.curve[0].losses == (4.9, 4.9) and far.curve[0].minutes == pytest.approx(0.1)
    assert not summary.notes
    assert (
        far.epochs == 30 / 214
        and trial_summary.summary_json(summary)["heads"][2]["epochs"] == 30 / 214
    )
    sentence = trial_summary.summary_sentence(summary)
    assert (
        sentence.startswith(f"Take {order[0]}: ")
        and "on test after 0.14 epochs, the low" in sentence
    )
    assert f"far ({far.perplexity:,.2f}) is worse. Validation still fell" in sentence
    assert f"{order[1]} ({tie.perplexity:,.2f}) is a tie with it" in sentence


def test_few_sentences_are_noted(tmp_path, plan):
    plan.heads = {"best": HeadPlan(30, 214, None, {}, 1.0)}
    words = LENGTHS[:49].sum()
    run = keep_run(tmp_path / "best", BASE[:words], lengths=LENGTHS[:49])
    notes = trial_summary.summarise({"best": [run]}, "test", plan, {}, START).notes
    assert "49 sentences are few to judge by" in " ".join(notes)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (3.0, "best took the highest learning rate that was tried: --rates 0.3,1,3,9 in"),
        (0.3, "best took the lowest learning rate that was tried: --rates 0.1,0.3,1,3 in"),
        (1.0, ""),
    ],
)
def test_rates_at_an_end_are_noted(tmp_path, factor, expected):
    plan = Plan(tmp_path / "plan", small.experiment(), Budget(None, 30, (0.3, 1.0, 3.0)))
    plan.heads = {"best": HeadPlan(30, 214, None, {}, factor)}
    run = keep_run(tmp_path / "best", BASE)
    notes = trial_summary.summarise({"best": [run]}, "test", plan, {}, START).notes
    rate_notes = [note for note in notes if "learning rate" in note]
    assert len(rate_notes) == bool(expected) and "".join(rate_notes).startswith(expected)


def test_unequal_minutes_are_noted(tmp_path):
    """The runs' steps took 0.3 minutes."""
    for minutes, noted in ((0.25, False), (0.1, True)):
        plan = Plan(tmp_path / f"of {minutes}", small.experiment(), Budget(minutes, None))
        plan.heads = {"best": HeadPlan(30, 214, None, {}, 1.0)}
        folders = {"best": [keep_run(tmp_path / f"{minutes}/best/0", BASE)]}
        notes = trial_summary.summarise(folders, "test", plan, {}, START).notes
        minute_notes = [
            note for note in notes if note.startswith("not equal minutes: best 0.30, of 0.1")
        ]
        assert len(minute_notes) == noted


def test_one_seed_is_noted_and_files_are_written(tmp_path, plan):
    folders = {
        "best": [keep_run(tmp_path / "best/0", BASE)],
        "far": [keep_run(tmp_path / "far/0", worse(0.5, 0.3, 1))],
        "near": [],
    }
    summary = trial_summary.summarise(folders, "test", plan, {"near": "it diverged."}, START)
    assert summary.notes == ("one seed does not show the noise of training",)
    folder = tmp_path / "trials"
    folder.mkdir()
    trial_summary.write_summary(folder, summary)
    assert (folder / "comparison.txt").read_text() == f"{summary.text()}\n"
    comparison = json.loads((folder / "comparison.json").read_text())
    assert comparison["sentence"] == trial_summary.summary_sentence(summary)
    assert [head["head"] for head in comparison["heads"]] == ["best", "far"]
    assert comparison["heads"][1]["difference"]["p_of_seeds"] == "nan"
    assert comparison["failed"] == {"near": "it diverged."}


def test_text_that_was_trained_on_is_noted(tmp_path, plan):
    counts = {"sentences": 9, "of_sentences": 9, "tokens": 50, "of_tokens": 50}
    shares = {"all": counts, "long": counts}
    overlap = {"letters": 30, "trained_on": shares, "selected_on": shares}
    folder = keep_run(tmp_path / "best/0", BASE)
    (result,) = (folder / "results").glob("*.json")
    result.write_text(json.dumps({**json.loads(result.read_text()), "overlap": overlap}))
    (_, note) = trial_summary.summarise({"best": [folder]}, "test", plan, {}, START).notes
    assert note.startswith("0 is not judged on unseen text: it was trained on this text (100.00%")


def test_figures_of_different_texts_are_not_compared(tmp_path, plan):
    folders = {
        "best": [keep_run(tmp_path / "best/0", BASE)],
        "far": [keep_run(tmp_path / "far/0", BASE, **{"data.sha256": "other"})],
    }
    with pytest.raises(UserError, match=r"because data\.sha256 differs"):
        trial_summary.summarise(folders, "test", plan, {}, START)


def test_no_run_is_an_error(plan):
    with pytest.raises(UserError, match="no head could be trained"):
        trial_summary.summarise({"best": []}, "test", plan, {"best": "it diverged."}, START)
