"""A pipe, a socket or a device in somebody else's folder is refused, and not waited for; so is what
Git LFS leaves in place of a file that it has not fetched."""

import os
import pathlib
import socket

import pytest

from tests.lab.training import small
from zoo.base import regular_files
from zoo.base.arrays import array_files
from zoo.base.trust import permissions
from zoo.errors import UserError
from zoo.lab.comparison import learning_curves
from zoo.lab.evaluation import records, results, translation_quality
from zoo.lab.export import standalone
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.seen_texts import SeenTexts
from zoo.lab.runs.workdir import Workdir
from zoo.lexicon import Lexicon
from zoo.sources import files
from zoo.sources.text import Text


def bind(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    "make", [os.mkfifo, bind, lambda path: os.symlink("/dev/zero", path), os.mkdir]
)
def test_a_file_is_regular_or_refused(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket may not be long
    make("a")
    with pytest.raises(OSError, match=r"a is not a regular file|Is a directory|No such device"):
        regular_files.read_bytes(pathlib.Path("a"))


def test_a_link_to_a_file_is_read(tmp_path):
    (tmp_path / "a").write_bytes("é\r\n".encode())
    (tmp_path / "b").symlink_to("a")
    assert regular_files.read_bytes(tmp_path / "b") == b"\xc3\xa9\r\n"
    assert regular_files.read_text(tmp_path / "b") == (tmp_path / "a").read_text() == "é\n"


READERS = {
    "experiment.json": lambda path: Workdir(path.parent).experiment(),
    "lexicon.npz": Lexicon.load,
    "texts.npz": SeenTexts.load,
    "metrics.jsonl": lambda path: learning_curves.read_metrics(path, {}),
    "test.json": results.read_passport,
    "translation.json": translation_quality.read,
    "record.jsonl": records.read,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_in_a_run_is_refused_in_one_sentence(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match=f"{name} is not a regular file"):
        READERS[name](tmp_path / name)


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 764284\n"
POINTER_READERS = {
    **READERS,
    "best/4/arrays/manifest.ocdbt": lambda path: Checkpoints(path.parents[3], ("best",), True),
    "saved/data-0.arrow": lambda path: Text(str(path.parent), "", ()).read("train"),
    "text.parquet": lambda path: Text(str(path), "", ()).read("train"),
    "text.txt": lambda path: Text(str(path), "", ()).read("train"),
    "vectors.npy": array_files.map_array,
}


@pytest.mark.parametrize("name", POINTER_READERS)
def test_a_pointer_of_git_lfs_is_named_in_one_sentence(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(POINTER)
    state = '{"_data_files": [{"filename": "data-0.arrow"}]}'
    (path.parent / "state.json").write_text(state)
    with pytest.raises((UserError, OSError)) as error:
        POINTER_READERS[name](path)
    message = str(error.value)
    assert f"{path.name} is a Git LFS pointer, which git lfs pull replaces by the file" in message
    assert isinstance(error.value, UserError) or name == "vectors.npy"


def test_a_pipe_among_the_files_that_training_writes_is_refused(tmp_path):
    recipe = small.experiment()
    Workdir(tmp_path).claim(recipe)
    for name in ("metrics.jsonl", "training.lock"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(UserError, match=f"{name} is not a regular file"):
            Workdir(tmp_path).check(recipe)
        (tmp_path / name).unlink()


def test_a_pipe_in_a_checkpoint_is_refused(tmp_path):
    (tmp_path / "best" / "4" / "arrays").mkdir(parents=True)
    os.mkfifo(tmp_path / "best" / "4" / "arrays" / "manifest.ocdbt")
    with pytest.raises(UserError, match=r"manifest.ocdbt is not a regular file: put back a copy"):
        Checkpoints(tmp_path, ("best",), read_only=True)


def test_a_pipe_in_an_export_is_refused_without_zoo(tmp_path):
    os.mkfifo(tmp_path / "export.json")
    with pytest.raises(ValueError, match=r"cannot be read \(export.json is not a regular file\)"):
        standalone.Model(tmp_path)


def test_a_pipe_that_only_another_persons_recipe_names_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("train.txt")
    assert files.find("train.txt") == pathlib.Path("train.txt")  # the user's own, as by <(zcat a)
    permissions.close({"train.txt"}, "runs/theirs")
    with pytest.raises(UserError, match=r"names train.txt, which is not a regular file: give"):
        files.find("train.txt")
