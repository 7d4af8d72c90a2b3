"""Runs in a bucket, for which a local folder stands: fetched, copied, taken over."""

import dataclasses
import json
import os
import pathlib
import signal
import time

import pytest
from etils import epath

from tests import object_store
from tests.training import small
from zoo.commands import command_line, program, train
from zoo.errors import Interrupted, UserError
from zoo.runs import object_storage
from zoo.runs.workdir import Workdir
from zoo.training.metrics import Metrics

pytestmark = pytest.mark.usefixtures("signals")
PATH = "gs://bucket/runs/a"


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """The folder that stands for gs://bucket; this machine's own folder of states is new."""
    root = tmp_path / "bucket"

    def remote(path):
        assert path.startswith("gs://bucket/")
        return epath.Path(root / path.removeprefix("gs://bucket/"))

    monkeypatch.setattr(object_storage, "_remote", remote)
    monkeypatch.setattr(object_storage, "_LOOK", 0.01)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "machine1"))
    return root / "runs/a"


def trained(recipe, path, capsys):
    """What training in a folder or bucket prints."""
    with object_storage.as_folder(path) as folder:
        train._train(recipe, folder, 1)
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_run_goes_on_bit_for_bit_on_another_machine(bucket, tmp_path, monkeypatch, capsys):
    recipe = small.experiment(epochs=2, checkpoint_every=2)
    trained(recipe, str(tmp_path / "straight"), capsys)
    stopped = Metrics.step

    def stop(self, step, *rest):
        stopped(self, step, *rest)
        if step == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Metrics, "step", stop)
        with pytest.raises(Interrupted, match="the state is saved"):
            trained(recipe, PATH, capsys)
    assert not (bucket / object_storage.OWNER).exists()  # let go
    assert not [*bucket.glob("training.lock*")]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "machine2"))
    assert "resuming after step" in trained(recipe, PATH, capsys)
    for name in ("experiment.json", "lexicon.npz"):
        assert (bucket / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    assert small.metrics(bucket) == small.metrics(tmp_path / "straight")
    steps = [
        sorted(path.name for path in (folder / "checkpoints/last").iterdir())
        for folder in (bucket, tmp_path / "straight")
    ]
    assert steps[0] == steps[1] and len(steps[0]) == 2  # what is deleted here is deleted there
    # The run of a bucket is fetched, and is a run.
    command_line.main(["pull", PATH, str(tmp_path / "pulled")])
    command_line.main(["generate", str(tmp_path / "pulled"), "--count", "1"])
    with pytest.raises(UserError, match="is there already"):
        object_storage.fetch(PATH, tmp_path / "pulled")
    with pytest.raises(UserError, match="holds no run"):
        object_storage.fetch("gs://bucket/none", tmp_path / "none")


def test_what_is_further_is_gone_on_with(bucket, tmp_path):
    def checkpoint(folder, step):
        path = folder / f"checkpoints/last/{step}/arrays"
        path.parent.mkdir(parents=True)
        path.write_text(str(step))

    one = object_storage.Bucket(PATH, log=lambda line: None)
    checkpoint(one.folder, 10)
    checkpoint(bucket, 7)
    (bucket / "experiment.json").write_text("{}")
    one.fetch()
    assert [path.name for path in (one.folder / "checkpoints/last").iterdir()] == ["10"]
    one.copy()
    assert (bucket / "checkpoints/last/10/arrays").read_text() == "10"
    checkpoint(bucket, 12)
    (one.folder / "old").touch()
    one.fetch()  # another machine has gone on
    names = {path.name for path in (one.folder / "checkpoints/last").iterdir()}
    assert names == {"7", "10", "12"} and not (one.folder / "old").exists()


def test_files_are_copied_when_they_change(bucket, monkeypatch):
    one = object_storage.Bucket(PATH)
    one.take()
    one.folder.mkdir(parents=True)
    for name in ("metrics.jsonl", "a.partial", "training.lock"):
        (one.folder / name).write_text("1")
    one.copy()
    assert {path.name for path in bucket.iterdir()} == {"metrics.jsonl", object_storage.OWNER}
    first = (bucket / "metrics.jsonl").stat().st_mtime_ns
    one.copy()
    assert (bucket / "metrics.jsonl").stat().st_mtime_ns == first
    (one.folder / "metrics.jsonl").write_text("1\n2")
    one.copy(last=True)
    assert [path.name for path in bucket.iterdir()] == ["metrics.jsonl"]
    assert (bucket / "metrics.jsonl").read_text() == "1\n2"


def test_one_process_at_a_time_trains_in_a_bucket(bucket, monkeypatch):
    monkeypatch.setattr(object_storage, "_LOOK", 5.0)
    first, second = (object_storage.Bucket(PATH, log=lambda line: None) for _ in range(2))
    first.take()
    monkeypatch.setattr(object_storage.time, "sleep", lambda seconds: first._sign())
    with pytest.raises(UserError, match=rf"is trained by process {os.getpid()} on .*: stop that"):
        second.take()
    # Without a sign of life it is taken over, and what seemed dead copies nothing more.
    slept = []
    monkeypatch.setattr(object_storage.time, "sleep", slept.append)
    second.take()
    assert sum(slept) == pytest.approx(object_storage.SILENCE, abs=6)
    first.folder.mkdir(parents=True)
    with pytest.raises(UserError, match="was taken over by another process"):
        first.copy()
    # An old sign is none.
    record = json.loads((bucket / object_storage.OWNER).read_text())
    (bucket / object_storage.OWNER).write_text(json.dumps(record | {"time": time.time() - 1000}))
    slept.clear()
    first.take()
    assert not slept


def test_a_bucket_without_rights_is_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def refuse(path):
        raise PermissionError("403 Forbidden")

    monkeypatch.setattr(object_storage, "_remote", refuse)
    command = ["train", "--config", "micro_softmax", PATH]
    assert program.run(lambda: command_line.main(command)) == 2
    error = capsys.readouterr().err
    assert "gs://bucket/runs/a cannot be written to (PermissionError: 403 Forbidden)" in error
    assert error.count("\n") == 1


def test_which_paths_are_buckets():
    assert all(map(object_storage.is_one, ("gs://a/b", "s3://a", "hf+x://a")))
    assert not any(map(object_storage.is_one, ("runs/a", "/runs/a", "C:\\a", "a:b//c", "")))
    with object_storage.as_folder("runs/a") as folder:
        assert folder == "runs/a" and not pathlib.Path(folder).exists()


BESIDE = {"b/run/experiment.json": b"{}", "b/run/checkpoints/last/10/arrays": b"1"}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """gs:// as objects, {bucket/name: bytes}."""
    objects = dict(BESIDE)
    object_store.stand_in(monkeypatch, objects)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return objects


@pytest.mark.parametrize(
    "name",
    [
        "../../../file",
        "../experiment.json",
        "checkpoints/last/../../../file",
        "checkpoints/./file",
        "checkpoints//file",
        "/etc/file",
        "checkpoints/",
        "..",
        "..\\file",
        "C:\\file",
    ],
)
def test_no_object_is_written_outside_the_folder(store, tmp_path, name):
    (tmp_path / "file").write_text("mine")
    store[f"b/run/{name}"] = b"yours"
    before = dict(store)
    sentence = "gs://b/run has an object whose name, 'gs://b/run/.*', is absolute or has an empty"
    with pytest.raises(UserError, match=sentence):
        object_storage.fetch("gs://b/run", tmp_path / "real/b/c/out")
    with pytest.raises(UserError, match=sentence), object_storage.as_folder("gs://b/run"):
        pytest.fail("trained")
    assert [path.name for path in tmp_path.rglob("*")] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"
    assert store == before  # the note of who trains there, too, has gone


def test_a_run_comes_and_goes_as_it_is(store, tmp_path):
    with object_storage.as_folder("gs://b/run/") as folder:
        (pathlib.Path(folder) / "checkpoints/last/10/arrays").unlink()
        added = pathlib.Path(folder) / "checkpoints/last/20/arrays"
        added.parent.mkdir()
        added.write_bytes(b"2")
    assert store == {"b/run/experiment.json": b"{}", "b/run/checkpoints/last/20/arrays": b"2"}
    out = object_storage.fetch("gs://b/run", tmp_path / "new/out")
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert files == {"experiment.json", "checkpoints/last/20/arrays"}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_what_breaks_off_is_not_there(store, tmp_path, monkeypatch):
    one = object_storage.Bucket("gs://b/run")
    one.fetch()
    store["b/run/checkpoints/last/20/arrays"] = b"2"
    store["b/run/lexicon.npz"] = b"3"
    read = object_store.Store._open

    def stop(self, path, mode="rb", **options):
        if path.endswith("lexicon.npz"):
            raise ConnectionError("reset by peer")
        return read(self, path, mode, **options)

    monkeypatch.setattr(object_store.Store, "_open", stop)
    with pytest.raises(UserError, match=r"cannot be read \(ConnectionError: reset by peer\)"):
        object_storage.fetch("gs://b/run", tmp_path / "out")
    with pytest.raises(UserError, match=r"cannot be read .*; what is here is in .*run-"):
        one.fetch()
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    kept = [path.name for path in (one.folder / "checkpoints/last").iterdir()]
    assert kept == ["10"] and [*one.folder.parent.iterdir()] == [one.folder]


def test_a_bucket_is_named_by_its_whole_address(store, monkeypatch):
    for path in ("gs://b/run", "gs://elsewhere/run"):
        with pytest.raises(UserError, match=f"{path} is in a bucket, .*`zoo pull {path} DIR`"):
            Workdir(path).experiment()
        start = dataclasses.replace(small.experiment(), init_from=path)
        with pytest.raises(UserError, match=f"^init_from: {path} is in a bucket"):
            Workdir("new").check(start)
        with pytest.raises(UserError, match=f"^{path} is in a bucket"):
            command_line.main(["compare", path])
