"""A work directory belongs to one experiment and keeps it; tests/malformed has damaged files."""

import os
import pathlib
import re
import shutil

import numpy as np
import pytest

from tests import examples
from tests.lab.training import small
from zoo.errors import UserError
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.training_lock import Ownership
from zoo.lab.runs.workdir import Workdir
from zoo.lexicon import Lexicon

RECIPE = small.experiment()


def test_an_experiment_is_kept(tmp_path):
    folder = tmp_path / "a" / "b"
    Workdir(folder).claim(RECIPE)
    assert Workdir(folder).experiment() == RECIPE
    Workdir(folder).claim(RECIPE)
    assert [path.name for path in folder.iterdir()] == ["experiment.json"]


def test_a_check_writes_nothing(tmp_path):
    Workdir(tmp_path / "new").check(RECIPE)
    assert not (tmp_path / "new").exists()


def test_another_experiment_is_refused_and_the_field_named(tmp_path):
    Workdir(tmp_path).claim(RECIPE)
    before = (tmp_path / "experiment.json").read_bytes()
    changed_recipe = small.with_settings(RECIPE, "training.batch=8")
    with pytest.raises(UserError, match=r"another experiment \(training.batch: 4 against 8\)"):
        Workdir(tmp_path).claim(changed_recipe)
    assert (tmp_path / "experiment.json").read_bytes() == before
    # Only another training is what a new run can start from this one for.
    with pytest.raises(UserError, match=rf"or another folder; .* --set init_from={tmp_path}\.$"):
        Workdir(tmp_path).claim(small.with_settings(RECIPE, "training.epochs=41"))
    with pytest.raises(UserError, match=r"or another folder\.$"):
        Workdir(tmp_path).claim(small.with_settings(RECIPE, "model.core.size=41"))


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is not a run of Zoo"):
        Workdir(tmp_path).claim(RECIPE)
    with pytest.raises(UserError, match="is not a run of Zoo"):
        Workdir(tmp_path / "notes.txt").claim(RECIPE)
    with pytest.raises(UserError, match="cannot be made"):
        Workdir(tmp_path / "notes.txt" / "run").claim(RECIPE)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_a_kill_leaves_is_no_other_run(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("os.link", die)
        patch.setattr(pathlib.Path, "unlink", die)  # a killed process does not tidy up
        with pytest.raises(Killed):
            Workdir(tmp_path).claim(RECIPE)
    (leftover,) = tmp_path.iterdir()
    assert re.fullmatch(r"\.experiment\.json\.[\w-]+\.partial", leftover.name)
    Workdir(tmp_path).claim(RECIPE)
    assert (tmp_path / "experiment.json").exists()
    assert Workdir(tmp_path).experiment() == RECIPE


def test_of_two_runs_that_begin_at_the_same_time_one_has_the_folder(tmp_path, monkeypatch):
    second_recipe = small.with_settings(RECIPE, "training.batch=8")
    link = os.link

    def be_second(*arguments):
        monkeypatch.setattr("os.link", link)
        Workdir(tmp_path).claim(second_recipe)
        link(*arguments)

    monkeypatch.setattr("os.link", be_second)
    with pytest.raises(UserError, match=r"another experiment \(training.batch: 8 against 4\)"):
        Workdir(tmp_path).claim(RECIPE)
    assert Workdir(tmp_path).experiment() == second_recipe
    assert [path.name for path in tmp_path.iterdir()] == ["experiment.json"]


def test_a_path_that_orbax_takes_for_a_pattern_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"a folder without \[ or \]"):
        Workdir(tmp_path / "run [1]").check(RECIPE)


def test_the_lexicon_is_kept_and_other_data_are_refused(tmp_path):
    workdir, lexicon = Workdir(tmp_path), examples.lexicon()
    workdir.save_lexicon(lexicon)
    workdir.save_lexicon(examples.lexicon())
    assert workdir.lexicon().digest() == lexicon.digest()
    second_lexicon = examples.plain_lexicon()
    with pytest.raises(UserError, match="the data have changed since"):
        workdir.save_lexicon(second_lexicon)
    assert workdir.lexicon().digest() == lexicon.digest()
    assert [path.name for path in tmp_path.iterdir()] == ["lexicon.npz"]


def test_a_flipped_bit_in_a_lexicon_is_found(tmp_path):
    """Wherever it is: the words are read as they were, or not at all."""
    workdir, lexicon = Workdir(tmp_path), examples.lexicon()
    workdir.save_lexicon(lexicon)
    path = tmp_path / "lexicon.npz"
    content = path.read_bytes()
    errors = 0
    for position in range(0, len(content), 7):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :]
        )
        try:
            assert workdir.lexicon().digest() == lexicon.digest()
        except UserError as error:
            assert f"{path} is missing or not a lexicon" in str(error)
            errors += 1
    assert errors > len(content) / 7 / 2


def test_a_lexicon_without_a_digest_is_not_read(tmp_path):
    Workdir(tmp_path).save_lexicon(examples.lexicon())
    with np.load(tmp_path / "lexicon.npz") as archive:
        arrays = {name: array for name, array in archive.items() if name != "digest"}
    np.savez(tmp_path / "lexicon.npz", **arrays)
    with pytest.raises(UserError, match=r"not a lexicon of this zoo \(it has no digest\)"):
        Workdir(tmp_path).lexicon()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def save(self, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Lexicon, "save", save)
    with pytest.raises(OSError, match="No space"):
        Workdir(tmp_path).save_lexicon(examples.plain_lexicon())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_params_are_those_of_the_best_checkpoint(tmp_path):
    trainer = small.trainer(RECIPE, tmp_path)
    workdir = Workdir(tmp_path)
    with pytest.raises(UserError, match="has no checkpoint of a validated model yet"):
        workdir.best(RECIPE, [trainer.task.lexicon])
    progress = trainer.train()
    step, params, _ = workdir.best(RECIPE, [trainer.task.lexicon])
    expected = small.last_state(trainer, "best")[1]["params"]
    assert step == progress.best_step
    np.testing.assert_array_equal(params["head"]["weights"], expected["head"]["weights"])


@pytest.mark.slow
def test_a_stopped_training_is_not_finished(tmp_path, monkeypatch):
    trainer = small.trainer(small.experiment(checkpoint_every=1), tmp_path)
    assert Workdir(tmp_path).is_finished() is None  # nothing is kept yet
    plain = trainer.task.part

    def batch(batches, index, *rows):
        if index == 2:
            raise RuntimeError("the power is cut")
        return plain(batches, index, *rows)

    monkeypatch.setattr(trainer.task, "part", batch)
    with pytest.raises(RuntimeError):
        trainer.train()
    assert Workdir(tmp_path).is_finished() is False
    small.trainer(small.experiment(checkpoint_every=1), tmp_path).train()
    assert Workdir(tmp_path).is_finished() is True


@pytest.mark.parametrize("name", ["", "checkpoints/last", "tensorboard", "metrics.jsonl"])
def test_a_folder_that_cannot_be_written_to_is_said_before_any_work(tmp_path, monkeypatch, name):
    Workdir(tmp_path).claim(RECIPE)
    for folder in ("checkpoints/last", "tensorboard"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "metrics.jsonl").touch()
    Workdir(tmp_path).check(RECIPE)
    locked = tmp_path / name

    def access(path, mode):  # not of the system, which lets root write everywhere
        return pathlib.Path(path) != locked

    monkeypatch.setattr("os.access", access)
    with pytest.raises(UserError, match=f"^{locked} cannot be written to: make it writable"):
        Workdir(tmp_path).check(RECIPE)


def test_a_run_that_is_trained_by_another_process_is_refused(tmp_path):
    Workdir(tmp_path).claim(RECIPE)
    with Ownership(tmp_path), pytest.raises(UserError, match="is being trained by process"):
        Workdir(tmp_path).check(RECIPE)


@pytest.mark.slow
def test_a_folder_that_is_deleted_while_it_is_trained_is_said(tmp_path, monkeypatch):
    """However late: nothing is as if the run had ended well."""
    for deleted_before in (1, 3):
        folder = tmp_path / str(deleted_before)
        saves = []

        def save(
            self, *arguments, saves=saves, folder=folder, last=deleted_before, save_checkpoint=SAVE
        ):
            saves.append(1)
            if len(saves) == last:
                shutil.rmtree(folder)
            save_checkpoint(self, *arguments)

        monkeypatch.setattr(Checkpoints, "save", save)
        with pytest.raises(UserError, match=f"^{folder} was deleted or moved"):
            small.run_in(folder, small.experiment(epochs=2))
        assert len(saves) == deleted_before


SAVE = Checkpoints.save
