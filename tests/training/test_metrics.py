"""What a run tells of its loss: it has the same name wherever it is shown."""

import io
import json
import sys
import time

import pytest

from tests.training import small
from zoo.heads import (
    NCE,
    BlackOut,
    ImportanceSampling,
    LogLinear,
    SelfNormalisedSoftmax,
    Softmax,
)
from zoo.training.metrics import Metrics, ProgressBar
from zoo.training.progress import Progress
from zoo.training.step import StepMetrics

# The head, its loss on a terminal and in metrics.jsonl, and the curve in TensorBoard.
NAMES = [
    (Softmax(), "loss", "epoch_training_loss"),
    (LogLinear(), "loss", "epoch_training_loss"),
    (NCE(samples=4), "NCE loss", "epoch_training_NCE_loss"),
    (
        ImportanceSampling(samples=4),
        "sampled softmax loss",
        "epoch_training_sampled_softmax_loss",
    ),
    (BlackOut(samples=4), "BlackOut loss", "epoch_training_BlackOut_loss"),
    (
        SelfNormalisedSoftmax(),
        "cross-entropy with log Z penalty",
        "epoch_training_cross-entropy_with_log_Z_penalty",
    ),
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def curves(workdir):
    """The bytes of the events that TensorBoard reads; names stand in them as they are."""
    return b"".join(path.read_bytes() for path in (workdir / "tensorboard").iterdir())


@pytest.mark.parametrize(("head", "name", "curve"), NAMES)
def test_the_loss_has_the_heads_name(head, name, curve, tmp_path, monkeypatch):
    progress = Progress(loss=12.0, tokens=4.0)
    with Metrics(tmp_path, 0, head.loss_name) as metrics:
        metrics.validation(7, progress, 2.0, 7.4)
    (line,) = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert line["epoch_training_loss"] == 3.0
    assert line.get("loss_name", "loss") == name
    assert curve.encode() in curves(tmp_path)

    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar(9, 0, head.loss_name) as bar:
        time.sleep(0.2)  # longer than a bar waits between two pictures of it
        bar.step(1, progress, StepMetrics(loss=3.0, tokens=1.0, gradient_norm=0.0, penalty=0.0))
        assert f"training {name} 3.000" in sys.stderr.getvalue()


def test_a_run_tells_the_name_of_its_loss(tmp_path, capsys):
    recipe = small.with_settings(
        small.experiment(epochs=1), "model.head=NCE", "model.head.samples=4"
    )
    small.trainer(recipe, tmp_path).train()
    assert ": training NCE loss " in capsys.readouterr().out
    assert [line["loss_name"] for line in small.metrics(tmp_path)] == ["NCE loss"]
    assert b"epoch_training_NCE_loss" in curves(tmp_path)


def test_the_mean_penalty_of_an_epoch_is_told(tmp_path, capsys):
    """However short the epoch: of a run without a penalty nothing is said of one."""
    progress = Progress(loss=12.0, tokens=4.0, penalty=2.0)
    (tmp_path / "by hand").mkdir()
    with Metrics(tmp_path / "by hand", 0) as metrics:
        metrics.validation(7, progress, 2.0, 7.4)
    (line,) = small.metrics(tmp_path / "by hand")
    assert (line["epoch_training_loss"], line["epoch_penalty"]) == (3.0, 0.5)

    recipe = small.experiment(**small.MODELS["log-linear"])
    small.trainer(recipe, tmp_path / "without").train()
    assert not any("epoch_penalty" in line for line in small.metrics(tmp_path / "without"))
    assert "penalty" not in capsys.readouterr().out
    recipe = small.with_settings(recipe, "model.head.penalty=0.1")
    small.trainer(recipe, tmp_path / "with").train()
    first, second = small.metrics(tmp_path / "with")
    assert first["epoch_penalty"] > second["epoch_penalty"] > 0  # a sum over both would be larger
    said = capsys.readouterr().out
    assert f"penalty {first['epoch_penalty']:.4f}, validation" in said
