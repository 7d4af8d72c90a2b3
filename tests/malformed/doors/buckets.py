"""What others keep in buckets, on the hub and in mirrors, and paths of what is fetched or read."""

import contextlib
import dataclasses
import pathlib
import types
import unittest.mock

import pytest

from tests import object_store
from tests.malformed import readers
from zoo.lab.runs import hub, location
from zoo.lab.runs.workdir import Workdir, check_folders
from zoo.sources import fetch


@contextlib.contextmanager
def _bucket(objects, folder):
    """gs://b/run with these objects; nothing that is refused leaves anything in the folder."""
    objects = {f"b/run/{name}": content for name, content in objects.items()}
    with pytest.MonkeyPatch.context() as patch:
        object_store.stand_in(patch, objects)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        before = dict(objects)
        try:
            yield
        finally:
            assert objects == before and not [*folder.iterdir()]


def _pull(objects, folder):
    with _bucket(objects, folder):
        location.fetch("gs://b/run", folder / "deep/down/out")


def _train(objects, folder):
    with _bucket(objects, folder):
        Workdir("gs://b/run").claim(readers.EXPERIMENT)


def _command(line, folder):
    with pytest.MonkeyPatch.context() as patch:
        object_store.stand_in(patch, {"b/run/experiment.json": b"{}"})
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        readers.CALLS["python -m zoo"](line, folder)


def _names(names, folder):
    """A repository of the hub with files of these names."""

    files = [types.SimpleNamespace(rfilename=name) for name in names]
    api = types.SimpleNamespace(
        repo_info=lambda repository: types.SimpleNamespace(sha="1", siblings=files)
    )
    # pytest.fail is no Exception that is put into words.
    module = types.SimpleNamespace(HfApi=lambda: api, snapshot_download=pytest.fail)
    with unittest.mock.patch.dict("sys.modules", huggingface_hub=module):
        hub.pull("me/model", folder / "out")


def _mirror(address, folder):
    fetch.fetch("tinyshakespeare", folder, mirror=address, log=lambda line: None)


def _init_from(path, folder):
    with contextlib.chdir(folder):
        pathlib.Path("file").write_text("")
        pathlib.Path("empty").mkdir()
        Workdir("new").check(dataclasses.replace(readers.EXPERIMENT, init_from=path))


def _runs(paths, folder):
    with contextlib.chdir(folder):
        pathlib.Path("runs/a").mkdir(parents=True)
        pathlib.Path("link").symlink_to("runs")
        check_folders(paths)


CALLS = {
    "pull of objects": _pull,
    "training on objects": _train,
    "pull, of a line": _command,
    "names on the hub": _names,
    "--mirror": _mirror,
    "init_from": _init_from,
    "folders of runs": _runs,
}
