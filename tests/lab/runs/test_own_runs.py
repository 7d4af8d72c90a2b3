"""The notes by which a run counts as the user's own."""

import json
import logging

import pytest

from tests.lab.training import small
from zoo.lab.runs import own_runs
from zoo.lab.runs.workdir import Workdir


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"modules": 3}'])
def test_a_spoilt_note_is_a_note(workdir, content):
    recipe = json.loads((workdir / "experiment.json").read_text())
    note = own_runs.note_file(recipe)
    content_before = note.read_text()
    note.write_text(content)
    assert own_runs.permitted_modules(recipe) == []
    note.write_text(content_before)


def test_training_goes_on_where_no_note_can_be_kept(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    # A test that ran train.py before this one has sent the zoo's log to standard output alone.
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    with caplog.at_level(logging.WARNING, "zoo"):
        Workdir(tmp_path / "run").claim(small.experiment())
    assert (tmp_path / "run" / "experiment.json").exists()
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith(f"{tmp_path / 'run'} is not noted as your own run (")
    assert "--trust-paths" in message and "\n" not in message
    recipe = json.loads((tmp_path / "run" / "experiment.json").read_text())
    assert own_runs.permitted_modules(recipe) is None


def test_notes_lie_in_the_users_own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # which the standard says to pass over
    assert own_runs.note_file({}).parent == tmp_path / ".local" / "state" / "zoo" / "runs"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert own_runs.note_file({}).parent == tmp_path / "state" / "zoo" / "runs"
