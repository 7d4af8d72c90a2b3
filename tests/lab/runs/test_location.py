"""Runs in a bucket: trained, interrupted, killed, resumed from another folder, read and fetched."""

import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import jax
import numpy as np
import pytest

from tests import object_store
from tests.lab.training import processes
from tests.lab.training import test_train_interruption as interruption
from zoo.errors import UserError
from zoo.lab.commands import command_table, program
from zoo.lab.runs import location
from zoo.lab.runs.workdir import Workdir, check_folders

pytestmark = pytest.mark.usefixtures("signals")
RUN = f"{object_store.BUCKET}/runs/a"
# A checkpoint takes a second there.
SHORT = ["--set", "training.epochs=3", "--set", "training.checkpoint_every=20"]


# ---------------------------------------------------------------- a real server


@pytest.fixture(scope="module")
def uninterrupted_end(tmp_path_factory):
    """The end of a run in a folder that was left alone."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    interruption.finish([*interruption.command(workdir), *SHORT])
    return interruption.end_of(workdir)


@pytest.fixture
def bucket():
    """The environment of programs with a bucket that is empty."""
    with object_store.emulator() as environment:
        yield environment


def start(environment, words, folder=None):
    """A program of the command line, in a folder."""
    return subprocess.Popen(
        [sys.executable, str(processes.TRAIN.with_name(words[0])), *words[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )


def finish(environment, words, folder=None):
    """What a program prints that ends well."""
    process = start(environment, words, folder)
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    return stdout


def fetched(environment, out):
    """The run in the bucket, as a folder."""
    command = [sys.executable, "-m", "zoo", "pull", RUN, str(out)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    return out


def wait_for_step(environment, step, process):
    """Waits until a checkpoint of a step or a later one is in the bucket."""
    store, until = environment["STORAGE_EMULATOR_HOST"], time.monotonic() + 600
    prefix = f"{RUN}/checkpoints/last/".removeprefix(f"{object_store.BUCKET}/")
    address = f"{store}/storage/v1/b/bucket/o?{urllib.parse.urlencode({'prefix': prefix})}"
    last_step = -1
    while last_step < step and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)
        with urllib.request.urlopen(address) as answer:
            names = [item["name"] for item in json.load(answer).get("items", ())]
        paths = [name.removeprefix(prefix).split("/") for name in names]
        complete_steps = [int(path[0]) for path in paths if path[1:] == ["commit_success.txt"]]
        last_step = max(complete_steps, default=-1)
    assert process.poll() is None, process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_resumes_from_another_folder_bit_for_bit(
    uninterrupted_end, bucket, tmp_path, number
):
    command = [*interruption.command(RUN), *SHORT]
    process = start(bucket, command)
    wait_for_step(bucket, 20, process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=600)
    if number == signal.SIGTERM:
        assert process.returncode == 128 + number
        assert re.match(r"(.*\n)*SIGTERM after step \d+: the state is saved\.", stderr)
    else:
        assert process.returncode == -number
    (tmp_path / "elsewhere").mkdir()
    assert "resuming after step" in finish(bucket, command, tmp_path / "elsewhere")
    assert not [*(tmp_path / "elsewhere").iterdir()]  # nothing of it lies on this machine
    out = fetched(bucket, tmp_path / "out")
    interruption.assert_same_end(uninterrupted_end, interruption.end_of(out))
    assert [*(out / "tensorboard").iterdir()]


@pytest.mark.slow
def test_commands_read_a_run_where_it_lies(bucket, tmp_path):
    finish(bucket, [*interruption.command(RUN), "--set", "training.epochs=1"])
    printed = finish(bucket, ["evaluate.py", RUN])
    assert f"{RUN}/results/test.sentences.json" in printed
    out = fetched(bucket, tmp_path / "out")
    bucket_passport = json.loads((out / "results/test.sentences.json").read_text())
    printed = finish(bucket, ["evaluate.py", str(out)])
    local_passport = json.loads((out / "results/test.sentences.json").read_text())
    assert printed and local_passport["figures"] == bucket_passport["figures"]
    start_values = ["--set", f"init_from={RUN}"]
    printed = finish(bucket, [*interruption.command(tmp_path / "other"), *start_values])
    assert f"head: taken from {RUN}, step " in printed


@pytest.mark.slow
def test_the_training_that_began_last_goes_on(uninterrupted_end, bucket, tmp_path):
    command = [*interruption.command(RUN), *SHORT]
    first = start(bucket, command)
    wait_for_step(bucket, 7, first)
    first.send_signal(signal.SIGSTOP)  # as a machine that sleeps
    finish(bucket, command)
    first.send_signal(signal.SIGCONT)
    _, stderr = first.communicate(timeout=600)
    assert first.returncode == 2
    assert re.search(
        rf"^error: {RUN} was (taken over by process|deleted or moved, or training.owner)",
        stderr,
        re.MULTILINE,
    )
    interruption.assert_same_end(
        uninterrupted_end, interruption.end_of(fetched(bucket, tmp_path / "out"))
    )


@pytest.mark.slow
def test_two_processes_train_in_one_bucket(uninterrupted_end, bucket, tmp_path):
    words = [*processes.command(RUN), *SHORT]
    started = processes.start_all(words, environment=bucket)
    for code, _, stderr in processes.ends(started):
        assert code == 0, stderr
    (last, _), *_ = interruption.end_of(fetched(bucket, tmp_path / "out"))
    expected = uninterrupted_end[0][0]
    assert last[0] == expected[0]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0), last[1], expected[1]
    )


@pytest.mark.slow
def test_a_bucket_that_cannot_be_reached_is_one_sentence():
    environment = object_store.environment(processes.free_port())
    process = start(environment, interruption.command(RUN))
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 2
    assert re.search(rf"^error: {RUN} cannot be reached \(\w+: .*\): check its name", stderr, re.M)
    assert "Traceback" not in stderr


# ---------------------------------------------------------------- names and addresses


@pytest.fixture
def store(monkeypatch):
    """gs:// as objects, {bucket/name: bytes}."""
    objects = {"b/run/experiment.json": b"{}", "b/run/checkpoints/last/10/arrays": b"1"}
    object_store.stand_in(monkeypatch, objects)
    return objects


@pytest.mark.parametrize("name", ["../../../file", "checkpoints//file", "/etc/file", "..\\file"])
def test_no_object_is_written_outside_the_folder(store, tmp_path, name):
    (tmp_path / "file").write_text("mine")
    store[f"b/run/{name}"] = b"yours"
    sentence = "gs://b/run has an object whose name, '.*', is absolute or has an empty"
    with pytest.raises(UserError, match=sentence):
        location.fetch("gs://b/run", tmp_path / "real/b/c/out")
    assert [path.name for path in tmp_path.rglob("*")] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_run_is_fetched_whole_or_not_at_all(store, tmp_path, monkeypatch):
    out = location.fetch("gs://b/run/", tmp_path / "new/out")
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert files == {"experiment.json", "checkpoints/last/10/arrays"}
    with pytest.raises(UserError, match="exists already"):
        location.fetch("gs://b/run", out)
    read = object_store.Store._open

    def stop(self, path, mode="rb", **options):
        if path.endswith("arrays"):
            raise ConnectionError("reset by peer")
        return read(self, path, mode, **options)

    monkeypatch.setattr(object_store.Store, "_open", stop)
    with pytest.raises(UserError, match=r"cannot be reached \(ConnectionError: reset by peer\)"):
        location.fetch("gs://b/run", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    with pytest.raises(UserError, match="does not hold a run"):
        location.fetch("gs://b/none", tmp_path / "out")


def test_a_full_disk_is_not_an_unreachable_bucket(store, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pathlib.Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space left on device"):
        location.fetch("gs://b/run", tmp_path / "out")
    assert not [*tmp_path.iterdir()]


def test_an_address_has_two_slashes_and_one_identity(store):
    assert str(Workdir("gs://b/run/").path) == "gs://b/run"
    assert str(location.absolute(Workdir("gs://b/run").path)) == "gs://b/run"
    with pytest.raises(UserError, match="are one folder: give each run once"):
        check_folders(["gs://b/run", "gs://b/run/"])


def test_a_bucket_without_rights_is_one_sentence(store, monkeypatch, capsys):
    def refuse(*_, **options):
        raise PermissionError("403 Forbidden")

    monkeypatch.setattr(object_store.Store, "info", refuse)
    command = ["train", "--config", "micro_softmax", "gs://b/run"]
    assert program.run(lambda: command_table.main(command)) == 2
    error = capsys.readouterr().err
    assert "gs://b/run cannot be reached (PermissionError: 403 Forbidden)" in error
    assert error.count("\n") == 1


def test_an_export_in_a_bucket_is_to_be_fetched(store):
    store["b/run/export.json"] = b"{}"
    with pytest.raises(UserError, match="gs://b/run is an export in a bucket: fetch it with `zoo"):
        Workdir("gs://b/run").experiment()
