"""Learning curves of runs and records, by recipe."""

import json
import math
import re

import numpy as np
import pytest

from tests.lab.comparison.test_comparison import keep
from tests.lab.training import small
from zoo import configuration
from zoo.errors import UserError
from zoo.lab.comparison import learning_curves
from zoo.lab.comparison.comparison import Group
from zoo.lab.evaluation import records
from zoo.lab.runs.seen_texts import SeenTexts, Texts
from zoo.lab.runs.workdir import METRICS


def run_of(folder, losses, changes=(), evaluated=True, **training):
    """A folder of a recipe with a validation every 50 steps and 60 seconds, two an epoch."""
    if evaluated:
        keep(folder, {"split": "validation", **dict(changes)})
    folder.mkdir(parents=True, exist_ok=True)
    experiment = configuration.to_json(small.experiment(**training))
    (folder / "experiment.json").write_text(json.dumps(experiment))
    lines = [{"step": 10, "training_loss": 9.0}]
    lines += [
        {
            "step": 50 * number,
            "epoch": (number - 1) // 2,
            "epoch_training_loss": loss + 1,
            "validation_log_perplexity": loss,
            "seconds": 60.0 * number,
        }
        for number, loss in enumerate(losses, 1)
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / METRICS).write_text(content + '{"step": 4')
    return str(folder)


@pytest.fixture
def draw_calls(monkeypatch):
    """The arguments with which curves are drawn."""
    calls = []
    monkeypatch.setattr(learning_curves, "draw_curves", lambda *arguments: calls.append(arguments))
    return calls


def test_seeds_of_a_recipe_are_one_curve(tmp_path, draw_calls, output):
    runs = [
        run_of(tmp_path / "softmax_0", [5.0, 4.0], seed=0),
        run_of(tmp_path / "softmax_1", [6.0, 3.0, 3.5], seed=1),
        run_of(tmp_path / "wide", [4.5], seed=0, batch=16),
    ]
    learning_curves.plot_curves(runs, str(tmp_path / "c.png"))
    ((curves, _, label),) = draw_calls
    assert [(recipe.name, *points) for recipe, *points in curves] == [
        ("softmax, 2 seeds", [[(50, 5.0), (100, 4.0)], [(50, 6.0), (100, 3.0), (150, 3.5)]], ()),
        ("wide", [[(50, 4.5)]], ()),
    ]
    assert label == "training step"
    assert [line.split() for line in output[1:3]] == [
        ["softmax,", "2", "seeds", "3.5000", "[3.0000,", "4.0000]", "100", "5"],
        ["wide", "4.5000", "-", "50", "1"],
    ]
    assert output[3:] == [str(tmp_path / "c.png")]


def test_curves_against_epochs_and_minutes(tmp_path, draw_calls):
    run = run_of(tmp_path / "a", [5.0, 4.0, 3.0])
    for against, xs in (("epoch", [0.5, 1, 1.5]), ("minutes", [1, 2, 3])):
        learning_curves.plot_curves([run], str(tmp_path / "c.png"), against, True)
        (curve,) = draw_calls.pop()[0]
        assert curve.validation == [[*zip(xs, [5.0, 4.0, 3.0], strict=True)]]
        assert curve.training == [[*zip(xs, [6.0, 5.0, 4.0], strict=True)]]
    unfinished = run_of(tmp_path / "b", [5.0, 4.0])
    with pytest.raises(UserError, match="first epoch has not ended with a validation: give --agai"):
        learning_curves.plot_curves([unfinished], str(tmp_path / "c.png"), "epoch")


def test_labels_name_the_recipes(tmp_path, draw_calls):
    runs = [
        run_of(tmp_path / "x0", [5.0], seed=0),
        run_of(tmp_path / "x1", [5.0], seed=1),
        run_of(tmp_path / "y", [4.0], batch=16),
    ]
    picture = str(tmp_path / "c.png")
    learning_curves.plot_curves(runs, picture, labels=["softmax", "NCE"])
    assert [curve.recipe.name for curve in draw_calls.pop()[0]] == ["softmax, 2 seeds", "NCE"]
    for labels in (["softmax"], ["a", "a"]):
        with pytest.raises(UserError, match=r"for 2 recipes: .* in this order: x, 2 seeds; y\.$"):
            learning_curves.plot_curves(runs, picture, labels=labels)


def test_a_record_keeps_the_curve(tmp_path, draw_calls):
    run = run_of(tmp_path / "a", [5.0, 4.0])
    lines = learning_curves.read_metrics(tmp_path / "a" / METRICS, {})
    experiment = json.loads((tmp_path / "a" / "experiment.json").read_text())
    file = tmp_path / "kept.jsonl"
    records.write(file, [records.Record("one", experiment, {}, lines)], {})
    records.write(file, [records.Record("two", experiment, {})], {})
    assert "validations" not in json.loads(file.read_text().splitlines()[1])
    learning_curves.plot_curves([f"{file}:one"], str(tmp_path / "c.png"))
    learning_curves.plot_curves([run], str(tmp_path / "c.png"))
    (record_curves, _, _), (run_curves, _, _) = draw_calls
    assert record_curves[0].validation == run_curves[0].validation == [[(50, 5.0), (100, 4.0)]]
    with pytest.raises(UserError, match=r"two was recorded without its learning curve"):
        learning_curves.plot_curves([str(file)], str(tmp_path / "c.png"))


def test_what_cannot_be_drawn_is_refused(tmp_path, draw_calls, output):
    first = run_of(tmp_path / "a", [5.0])
    second = run_of(tmp_path / "b", [4.0], {"tokens": 7}, batch=16)
    with pytest.raises(UserError, match="a and b cannot be compared on validation, because tokens"):
        learning_curves.plot_curves([first, second], str(tmp_path / "c.png"))
    (tmp_path / "b" / METRICS).write_text('{"step": 4}\n')
    with pytest.raises(UserError, match="b has not validated anything yet"):
        learning_curves.plot_curves([second], str(tmp_path / "c.png"))
    (tmp_path / "b" / METRICS).unlink()
    with pytest.raises(UserError, match=r"metrics\.jsonl is not in .*b, as exports do not"):
        learning_curves.plot_curves([second], str(tmp_path / "c.png"))
    fresh = run_of(tmp_path / "c", [4.0], evaluated=False, batch=16)
    learning_curves.plot_curves([first, fresh], str(tmp_path / "c.png"))
    assert output[-2].startswith("c: not evaluated on their validation text")
    assert output[-2].endswith(f"python -m zoo evaluate {fresh} --split validation.")


DAMAGED = {
    "[1,2]": "it is a list, where an object should be",
    '{"step": 60, "validation_log_perplexity": NaN}': "it has NaN, which is not a finite number",
    '{"step": -10, "training_loss": 3.0}': "step is -10, where at least 50 should be",
    '{"step": 40, "training_loss": 3.0}': "step is 40, where at least 50 should be",
    '{"step": 60, "train': "Unterminated string",
    '{"training_loss": 3.0}': "step is missing or null",
    "": "Expecting value",
}


@pytest.mark.parametrize("line", DAMAGED)
def test_a_damaged_line_is_named(tmp_path, draw_calls, line):
    run = run_of(tmp_path / "a", [5.0, 4.0])
    first, second, *later_lines = (tmp_path / "a" / METRICS).read_text().split("\n")
    (tmp_path / "a" / METRICS).write_text("\n".join([first, second, line, *later_lines]))
    reason = re.escape(DAMAGED[line])
    with pytest.raises(
        UserError, match=rf"metrics\.jsonl, line 3, is not a line of metrics \({reason}.*take it"
    ):
        learning_curves.plot_curves([run], str(tmp_path / "c.png"))


def test_random_bytes_are_not_a_line_that_was_cut_short(tmp_path, draw_calls):
    run = run_of(tmp_path / "a", [5.0])
    for content in (bytes(range(255, 10, -1)), b"[1, 2]", b'{"ste\n', b'{"seconds": 4.0, "st'):
        (tmp_path / "a" / METRICS).write_bytes(content)
        with pytest.raises(UserError, match=r"metrics\.jsonl, line 1, is not a line of metrics"):
            learning_curves.plot_curves([run], str(tmp_path / "c.png"))
    for content in (b"", b'{"ste', b'{"step": 5, "epo', b'{"step": 5}'):
        (tmp_path / "a" / METRICS).write_bytes(content)
        with pytest.raises(UserError, match="a has not validated anything yet: train it further"):
            learning_curves.plot_curves([run], str(tmp_path / "c.png"))


def test_steps_of_a_record_do_not_fall(tmp_path, draw_calls):
    run_of(tmp_path / "a", [5.0, 4.0])
    lines = learning_curves.read_metrics(tmp_path / "a" / METRICS, {})
    experiment = json.loads((tmp_path / "a" / "experiment.json").read_text())
    file = tmp_path / "kept.jsonl"
    for validations, message in (
        (lines[::-1], "step is 50, where at least 100 should be"),
        ([{**lines[0], "step": -10}], "step is -10, where at least 0 should be"),
    ):
        records.write(file, [records.Record("one", experiment, {}, validations)], {})
        with pytest.raises(UserError, match=message):
            learning_curves.plot_curves([f"{file}:one"], str(tmp_path / "c.png"))


def test_a_loss_that_is_not_a_number_is_not_the_best():
    lines = [{"step": step, learning_curves.LOSS: loss} for step, loss in ((1, math.nan), (2, 3.0))]
    assert learning_curves.BestValidations.from_validations([lines]) == ([3.0], [2])


def test_runs_of_two_validation_texts_are_refused_before_any_evaluation(tmp_path, draw_calls):
    runs = [run_of(tmp_path / name, [4.0], evaluated=False) for name in "abc"]
    for run, words in zip(runs, (["a", "b"], ["a", "b"], ["a", "c"]), strict=True):
        texts = SeenTexts(Texts.from_text("train", [["x"]]), Texts.from_text("validation", [words]))
        texts.save(f"{run}/texts.npz")
    picture = str(tmp_path / "c.png")
    learning_curves.plot_curves(runs[:2], picture)
    with pytest.raises(UserError, match="a and c were validated on different texts"):
        learning_curves.plot_curves(runs, picture)


def test_a_picture_is_written(tmp_path):
    run = run_of(tmp_path / "a", [5.0, 4.0])
    learning_curves.plot_curves([run], str(tmp_path / "curves.svg"))
    assert ">a</text>" in (tmp_path / "curves.svg").read_text(encoding="utf-8")


def test_a_first_epoch_that_ends_at_step_0_is_refused():
    lines = [{"step": step, "epoch": step, learning_curves.LOSS: 2.0} for step in (0, 1)]
    with pytest.raises(UserError, match=r"the first epoch has not ended .*: give --against step"):
        learning_curves.curve_points(lines, "epoch")


@pytest.mark.parametrize("loss", ["1e308", "-1e308", "1e39", "1" + "0" * 299])
def test_a_loss_beyond_float32_is_refused(tmp_path, loss):
    (tmp_path / METRICS).write_text(f'{{"step": 1, "validation_log_perplexity": {loss}}}\n')
    with pytest.raises(UserError, match=r"metrics.jsonl, line 1, .* which is no loss of float32"):
        learning_curves.read_metrics(tmp_path / METRICS, learning_curves.FIELDS["step"])


# What an edit puts in the place of a value.
VALUES = ["null", "true", "-1", "0", "1e308", "-1e308", "9223372036854775808", '"nan"', '"-inf"']
VALUES += ["1" * 400, '"x"', "[]", "{}", "1.5", "NaN", "1e-320", ""]


@pytest.mark.parametrize("against", learning_curves.FIELDS)
def test_a_damaged_file_is_drawn_or_refused_in_one_sentence(tmp_path, against):
    random, file = np.random.default_rng(0), tmp_path / METRICS
    fields = learning_curves.WITH_TRAINING[against]
    line = '{"step": %s, "epoch": %s, "seconds": %s, "epoch_training_loss": %s, "%s": %s}'
    outcomes = set()
    for _ in range(200):
        values = [["5", "0", "1.5", "3.0", learning_curves.LOSS, "2.5"] for _ in range(3)]
        values[1][:2], values[2][:2] = ["10", "1"], ["15", "2"]
        for row, place in random.integers(0, (3, 6), (2, 2)):
            values[row][place] = random.choice(VALUES)
        file.write_text("\n".join(line % tuple(row) for row in values))
        try:
            lines = learning_curves.read_metrics(file, fields)
            if lines:
                curve = learning_curves.Curve.from_validations(
                    Group("a", 0, ("a",)), [lines] * 2, against
                )
                assert [*learning_curves.best_table({curve.recipe: [lines] * 2})]
                [*map(learning_curves.mean_curve, (curve.validation, curve.training))]
                outcomes.add("drawn")
        except UserError:
            outcomes.add("refused")
    assert outcomes == {"drawn", "refused"}
