"""Bad input gets one clear sentence and exit code 2, and nothing is lost."""

import subprocess
import sys

import pytest

import configs
import train
from tests.repository.test_configs import LEMMAS
from zoo.lab.commands import program
from zoo.lab.runs import seen_texts
from zoo.lab.runs.workdir import Workdir

MICRO = [
    *(f"data.{name}=2" for name in LEMMAS),
    *("data.train_sentences=9", "data.validation_sentences=3", "data.test_sentences=3"),
    *("model.embedding.size=4", "model.core.size=4", "training.batch=4", "training.length=5"),
    *("training.epochs=1", "training.optimizer.schedule=Constant"),
]


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """train.py in this process: (exit code, stdout, stderr)."""

    def run(config, *settings, workdir=tmp_path / "run", devices=1):
        arguments = ["train.py", "--config", str(config), str(workdir)]
        arguments += ["--devices", str(devices)]
        for setting in settings:
            arguments += ["--set", setting]
        monkeypatch.setattr(sys, "argv", arguments)
        code = program.run(train.main)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def assert_refused(result, *parts):
    """Exit code 2, and one line on stderr that has all the parts."""
    code, _, stderr = result
    assert code == 2
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1 and stderr.endswith("\n")
    for part in parts:
        assert part in stderr


def test_an_unknown_config_lists_the_nearest(command, tmp_path, monkeypatch):
    assert_refused(command("micro_sofmax"), "micro_softmax", "--list")
    assert_refused(command(tmp_path / "mine.py"), "the config file")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("x = 3\n")
    assert_refused(command("mine"), "'mine' is not a config, but a file: give --config mine.py.")


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("model.head.tied=true", "model.embedding.size=8"),
        ("training.rates=((cor,2),)", "'cor', under which no parameter is trained"),
    ],
)
def test_a_wrong_setting(command, tmp_path, setting, part):
    assert_refused(command("micro_softmax", *MICRO, "model.core.size=8", setting), part)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_work_directory_of_another_experiment(command, tmp_path):
    assert command("micro_softmax", *MICRO)[0] == 0
    workdir = Workdir(tmp_path / "run")
    texts = seen_texts.read_record(workdir)
    assert texts.trained_on.about[0].sentences == 9
    assert texts.data == workdir.data_digest() != ""
    assert texts.made_with.versions["zoo"]
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = command("micro_softmax", *MICRO, "model.core.size=5")
    assert_refused(result, "another experiment (model.core.size: 4 against 5)")
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # The same command again finds the run finished and leaves it as it is.
    code, stdout, stderr = command("micro_softmax", *MICRO)
    assert (code, stderr) == (0, "")
    assert "this run is finished" in stdout
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_mistake_corrected_is_no_other_experiment(command, tmp_path):
    assert_refused(command("micro_softmax", *MICRO, "training.batch=6", devices=4), "batch=8")
    assert command("micro_softmax", *MICRO)[0] == 0


def cut_short(checkpoint):
    """Empties the files of a checkpoint."""
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(b"")


@pytest.mark.slow
def test_a_checkpoint_that_is_cut_short(command, tmp_path):
    settings = [*MICRO, "training.checkpoint_every=2", "training.epochs=2"]
    code, stdout, _ = command("micro_softmax", *settings)
    assert code == 0
    folder = tmp_path / "run" / "checkpoints" / "last"
    before, last = sorted(folder.iterdir(), key=lambda path: int(path.name))
    cut_short(last)
    code, stdout, stderr = command("micro_softmax", *settings)
    assert (code, stderr) == (0, "")
    assert f"the checkpoint of step {last.name} in {folder} is damaged and passed over" in stdout
    assert f"resuming after step {before.name} " in stdout
    assert "evaluate it: python evaluate.py" in stdout
    for checkpoint in folder.iterdir():
        cut_short(checkpoint)
    result = command("micro_softmax", *settings)
    assert_refused(result, f"none of the checkpoints in {folder} can be read")
    assert len([*folder.iterdir()]) == 2  # nothing is thrown away


@pytest.mark.slow
def test_a_full_disk(small_disk):
    """With TensorBoard's thread and orbax's, and what runs at the end of a process."""
    settings = [*MICRO, "training.epochs=500", "training.checkpoint_every=1"]
    arguments = ["train.py", "--config", "micro_softmax", str(small_disk / "run")]
    arguments += [part for setting in settings for part in ("--set", setting)]
    (small_disk / "filler").write_bytes(bytes(790_000))
    finished = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert_refused((finished.returncode, finished.stdout, finished.stderr), "the disk is full")
    assert "make room" in finished.stderr


def test_a_config_file_of_ones_own(command, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from configs import micro_softmax\nget_config = micro_softmax.get_config\n")
    code, stdout, _ = command(path, *MICRO)
    assert code == 0
    assert "evaluate it: python evaluate.py" in stdout
    path.write_text("x = 3\n")
    assert_refused(command(path, workdir=tmp_path / "other"), "has no get_config()")


def test_the_process_itself_shows_no_traceback(tmp_path):
    words = ["train.py", "--config", "ptb_smal", str(tmp_path / "run")]
    finished = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith(
        "error: the config 'ptb_smal' does not exist; the nearest are ptb_small"
    )
    assert finished.stderr.count("\n") == 1


def test_the_list_has_every_config(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py", "--list"])
    assert program.run(train.main) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) < 128 for line in lines)
    config_lines = [line for line in lines if line[:2] in ("* ", "  ")]
    assert {line[2:].split()[0] for line in config_lines} == {*configs.names()}
    assert len(config_lines) == len(configs.names())
    (start,) = (line for line in config_lines if line.startswith("* micro_softmax "))
    assert "quickstart" in start


def test_a_recipe_is_shown_whole_with_its_settings(monkeypatch, capsys):
    words = ["train.py", "--show", "ptb_nce", "--set", "training.epochs=2"]
    monkeypatch.setattr(sys, "argv", words)
    assert program.run(train.main) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"    epochs = 2", "    head: NCE", "      samples = 100"} <= set(lines)
