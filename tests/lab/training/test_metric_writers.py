"""What a run tells of its loss: it has the same name wherever it is shown."""

import errno
import functools
import io
import json
import os
import re
import subprocess
import sys
import time

import pytest

from tests.lab.training import small
from zoo.heads import (
    NCE,
    BlackOut,
    ImportanceSampling,
    LogLinear,
    SelfNormalisedSoftmax,
    Softmax,
)
from zoo.lab.training import loop
from zoo.lab.training.loop import Progress, Stopwatch
from zoo.lab.training.metric_writers import Metrics, ProgressBar
from zoo.lab.training.step import StepMetrics
from zoo.optimizers import SGD

FIGURES = {"validation_log_perplexity": 2.0, "validation_perplexity": 7.4}
NAMES = {
    Softmax(): "loss",
    LogLinear(): "loss",
    NCE(samples=4): "NCE loss",
    ImportanceSampling(samples=4): "sampled softmax loss",
    BlackOut(samples=4): "BlackOut loss",
    SelfNormalisedSoftmax(): "cross-entropy with log Z penalty",
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def curves(workdir):
    """The bytes of the events that TensorBoard reads; names stand in them as they are."""
    return b"".join(path.read_bytes() for path in (workdir / "tensorboard").iterdir())


@pytest.mark.parametrize(("head", "name"), NAMES.items())
def test_the_loss_has_the_heads_name(head, name, tmp_path, monkeypatch):
    progress = Progress(loss=12.0, tokens=4.0)
    with Metrics(tmp_path, 0, head.loss_name) as metrics:
        metrics.validation(7, progress, FIGURES)
    (line,) = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert line["epoch_training_loss"] == 3.0
    assert line.get("loss_name", "loss") == name
    assert f"epoch_training_{name.replace(' ', '_')}".encode() in curves(tmp_path)

    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar(9, 0, head.loss_name) as bar:
        time.sleep(0.2)  # longer than a bar waits between two pictures of it
        bar.step(1, 0.5, progress, StepMetrics(3.0, 1.0, 0.0, 0.0))
        assert f"training {name} 3.000" in sys.stderr.getvalue()


def test_a_run_tells_the_name_of_its_loss(tmp_path):
    recipe = small.with_settings(
        small.experiment(epochs=1), "model.head=NCE", "model.head.samples=4"
    )
    small.trainer(recipe, tmp_path, log=(log := [])).train()
    assert ": training NCE loss " in "\n".join(log)
    assert [line["loss_name"] for line in small.metrics(tmp_path)] == ["NCE loss"]
    assert b"epoch_training_NCE_loss" in curves(tmp_path)


@pytest.mark.slow
def test_event_files_are_written_without_frameworks_that_are_installed(tmp_path):
    """They are hidden from tensorboardX, and from nobody after it."""
    (tmp_path / "torch.py").write_text("value = 3")
    script = (
        "import sys, zoo.lab.training.metric_writers\n"
        "print([name for name in ('torch', 'google.cloud.storage') if name in sys.modules])\n"
        "import torch, tensorboardX\n"
        "print(torch.value)\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"}
    finished = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    assert finished.stdout == "[]\n3\n"


@pytest.mark.parametrize("tokens, expected", [(4.0, (1.5, 0.5)), (1.0, (6, 2)), (0.0, (6, 2))])
def test_a_step_has_its_means_of_loss_and_penalty(tmp_path, tokens, expected):
    results = StepMetrics(loss=6.0, tokens=tokens, gradient_norm=1.25, penalty=2.0)
    with Metrics(tmp_path, 0) as metrics:
        metrics.step(199, Progress(), results)  # one of every hundred is written
        metrics.step(200, Progress(), results)
        metrics.step(300, Progress(), results._replace(penalty=0.0))
    with_penalty, without = small.metrics(tmp_path)
    assert with_penalty["step"] == 200 and with_penalty["gradient_norm"] == 1.25
    assert (with_penalty["training_loss"], with_penalty["penalty"]) == expected
    assert without["step"] == 300 and "penalty" not in without


@pytest.mark.slow
def test_the_mean_penalty_of_an_epoch_is_told(tmp_path):
    """However short the epoch: of a run without a penalty nothing is said of one."""
    progress = Progress(loss=12.0, tokens=4.0, penalty=2.0)
    (tmp_path / "by hand").mkdir()
    with Metrics(tmp_path / "by hand", 0) as metrics:
        metrics.validation(7, progress, FIGURES)
    (line,) = small.metrics(tmp_path / "by hand")
    assert (line["epoch_training_loss"], line["epoch_penalty"]) == (3.0, 0.5)

    recipe = small.experiment(**small.MODELS["log-linear"])
    small.trainer(recipe, tmp_path / "without", log=(log := [])).train()
    assert not any("epoch_penalty" in line for line in small.metrics(tmp_path / "without"))
    assert log and "penalty" not in "\n".join(log)
    recipe = small.with_settings(recipe, "model.head.penalty=0.1")
    small.trainer(recipe, tmp_path / "with", log=log).train()
    first, second = small.metrics(tmp_path / "with")
    assert first["epoch_penalty"] > second["epoch_penalty"] > 0  # a sum over both would be larger
    assert f"penalty {first['epoch_penalty']:.4f}, validation" in "\n".join(log)


def lines_after(tmp_path, content, step):
    """(metrics.jsonl of a run that goes on after a step and tells a validation, what was said)."""
    (tmp_path / "metrics.jsonl").write_bytes(content)
    log = []
    with Metrics(tmp_path, step, log=log.append) as metrics:
        metrics.validation(9, Progress(), FIGURES)
    *before, last = (tmp_path / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
    assert json.loads(last)["step"] == 9
    return before, log


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"step": 1}\n{"step": 2}', [b'{"step": 1}', b'{"step": 2}']),
        (b'{"step": 1}\n{"step": 2, "ep', [b'{"step": 1}']),
        (b'{"step": 1}\n{"step": 3}\n', [b'{"step": 1}']),
        (b'{"step": 1}\n{"step": 3}', [b'{"step": 1}']),
        (b"12", []),
    ],
)
def test_a_last_line_that_was_cut_short_is_mended(tmp_path, content, expected):
    assert lines_after(tmp_path, content, 2) == (expected, [])


@pytest.mark.parametrize(
    "line", [b"[1]", b"5", b'{"step": "x"}', b"{}", b"\xff", b"null", b'{"step": 0}']
)
def test_a_line_that_is_none_is_said(tmp_path, line):
    before, log = lines_after(tmp_path, b'{"step": 1}\n' + line + b'\n{"step": 2}\n', 2)
    assert before == [b'{"step": 1}', b'{"step": 2}']
    (sentence,) = log
    assert f"{tmp_path}/metrics.jsonl, line 2 is not an object with a step" in sentence


class Closed(io.StringIO):
    """A terminal that was closed."""

    def isatty(self):
        return True

    def write(self, text):
        raise OSError(errno.EIO, "Input/output error")


def test_a_run_goes_on_when_its_terminal_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with ProgressBar(9, 0) as bar:
        bar._bar.fp.write = Closed().write
        sys.stdout = Closed()
        results = StepMetrics(loss=3.0, tokens=1.0, gradient_norm=0.0, penalty=0.0)
        time.sleep(0.2)
        for step in range(1, 4):
            bar.step(step, 0.5, Progress(), results)
        bar.log("a line")
        bar.log("another")
    sys.stdout.close()  # that took the terminal's place


def test_without_a_terminal_a_line_a_minute_is_logged(capsys):
    """A step of 20 s after one of 100 s, which is compiled: three steps a minute. The first line
    comes after ten seconds."""
    seconds = iter([0, *range(100, 220, 20)])
    with ProgressBar(400, 10, "NCE loss", clock=lambda: next(seconds)) as bar:
        for step in range(11, 17):
            progress = Progress(epoch=1, loss=3.0 * step, tokens=2.0 * step)
            bar.step(step, step / 20, progress, StepMetrics(3.0, 4000.0, 0.0, 0.0))
    # 4,000 tokens in 20 s, 3 * 4,000 in 60 s; 388 and 385 steps of 20 s are left.
    assert capsys.readouterr().out == (
        "epoch 2, 60% of it, step 12 of 400: training NCE loss 1.500, 200 tokens/s, 2:09:20 left\n"
        "epoch 2, 75% of it, step 15 of 400: training NCE loss 1.500, 200 tokens/s, 2:08:20 left\n"
    )


def test_the_bar_estimates_the_time_left_without_the_compilation(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    """18.5 s of compilation, then a second a step. tqdm has seen 2 steps in the first second, and 1
    in the second: by its mean (0.3) 0.72 steps / 0.51 s, so the other 57 take 40 s, not 18 minutes.
    """
    now = 0.0
    with ProgressBar(60, 0) as bar:
        bar._bar._time = lambda: now
        bar._bar.start_t = bar._bar.last_print_t = now
        now = 18.5
        bar.exclude(18.5)
        for step, now in ((1, 18.5), (2, 19.5), (3, 20.5)):  # noqa: B007
            bar.step(step, step / 60, Progress(), StepMetrics(3.0, 4000.0, 0.0, 0.0))
        assert re.search(r"3/60 \[00:02<00:40", str(bar._bar))


def test_a_line_of_the_log_is_not_kept_back(tmp_path, monkeypatch):
    file = tmp_path / "log"
    with file.open("w") as out, ProgressBar(400, 10) as bar:
        monkeypatch.setattr(sys, "stdout", out)  # a file, which keeps some kilobytes back
        bar.log("compiling")
        assert file.read_text() == "compiling\n"
        monkeypatch.undo()


def test_compilation_of_another_shape_is_left_out(capsys):
    """As above, with 500 s of compilation before the third step."""
    seconds = iter([0, 100, 120, 640, 660, 680, 700])
    with ProgressBar(400, 10, "NCE loss", clock=lambda: next(seconds)) as bar:
        for step in range(11, 17):
            if step == 13:
                bar.exclude(500)
            bar.step(step, step / 20, Progress(epoch=1), StepMetrics(3.0, 4000.0, 0.0, 0.0))
    reports = re.findall(r"step (\d+) .* (\d+) tokens/s, (.*) left", capsys.readouterr().out)
    assert reports == [("12", "200", "2:09:20"), ("15", "200", "2:08:20")]


def test_a_run_tells_where_it_is_between_two_epochs(tmp_path, monkeypatch):
    monkeypatch.setattr("zoo.lab.training.metric_writers.SECONDS", 0.0)  # a line each step
    trainer = small.trainer(small.experiment(epochs=2), tmp_path, log=(log := []))
    trainer.train()
    steps = trainer.task.epoch_steps
    reports = re.findall(r"epoch (\d), (\d+)% of it, step (\d+) of", "\n".join(log))
    expected = [
        (epoch + 1, round(100 * index / steps), epoch * steps + index)
        for epoch in range(2)
        for index in range(1, steps + 1)
    ]
    assert [(*map(int, line),) for line in reports] == expected[1:]  # all but the first


def test_a_validation_has_the_seconds_of_the_steps_before_it(tmp_path, monkeypatch):
    """Also one that is not the best, before which no checkpoint is written."""
    recipe = small.experiment(optimizer=SGD(learning_rate=1e-30), validate_every=1, epochs=1)
    trainer = small.trainer(recipe, tmp_path / "run")
    clock, plain = [0.0], trainer.task.part

    def batch(*arguments):
        clock[0] += 1
        return plain(*arguments)

    monkeypatch.setattr(trainer.task, "part", batch)
    monkeypatch.setattr(loop, "Stopwatch", functools.partial(Stopwatch, clock=lambda: clock[0]))
    trainer.train()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    validations = [line for line in map(json.loads, lines) if "validation_log_perplexity" in line]
    assert len(validations) > 2
    assert [line["seconds"] for line in validations] == [line["step"] for line in validations]
