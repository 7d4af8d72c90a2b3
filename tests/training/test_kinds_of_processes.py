"""Kinds of training in two processes: pairs in buckets, start values of another run, tables updated
by rows. Each ends as it does in one process with as many devices."""

import jax
import numpy as np
import pytest

from tests.test_configs import LEMMAS
from tests.training import test_processes as processes

PAIRS = [
    "--config",
    "micro_translation",
    *(f"data.language.{name}=2" for name in LEMMAS),
    "data.language.train_sentences=120",
    "data.language.validation_sentences=8",
    "data.language.test_sentences=5",
    "model.embedding.size=4",
    "model.core.size=6",
    "model.core.dropout=0.3",
    "training.buckets.padding=0.2",
    "training.batch=4",
    "training.epochs=1",
    "training.optimizer.schedule.warmup=5",
    "training.checkpoint_every=7",
]
ROWS = [
    "model.head=NCE",
    "model.head.samples=5",
    "training.optimizer=Adagrad",
    "training.optimizer.schedule=Cosine",
    "training.row_sparse=True",
]


def settings(words):
    """Words of a command line, --set before what has a value."""
    return [part for word in words for part in (["--set", word] if "=" in word else [word])]


def words_of(workdir):
    """A command of a language model on a few sentences."""
    return [*processes.command(workdir), *processes.SHORT]


def pairs_of(workdir):
    return [*settings(PAIRS), "--workdir", str(workdir)]


def one(arguments, devices=1):
    ((code, stdout, stderr),) = processes.ends([processes.start(arguments, devices)])
    assert code == 0, stderr
    return stdout


def two(arguments, devices=1):
    (code, stdout, stderr), (other, *_) = processes.ends(
        processes.start_two(arguments, devices=devices)
    )
    assert (code, other) == (0, 0), stderr
    return stdout


def check_same(first, second):
    """Of two folders: the same to the bit."""
    expected, found = map(processes.end_apart_from_devices, (first, second))
    assert (expected[0], expected[2]) == (found[0], found[2])
    jax.tree.map(np.testing.assert_array_equal, expected[1], found[1])


@pytest.mark.parametrize(("devices", "model"), [(1, 1), (2, 2)])
@pytest.mark.slow
def test_encoder_decoders_are_trained_on_pairs_in_buckets(tmp_path, devices, model):
    share = ["--set", f"parallel.model={model}"]
    said = one([*pairs_of(tmp_path / "one"), *share], 2 * devices)
    assert "bucket" in said or "shapes" in said
    two([*pairs_of(tmp_path / "two"), *share], devices)
    check_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_a_run_starts_with_values_of_another(tmp_path):
    one(words_of(tmp_path / "before"))
    start = ["--set", f"init_from={tmp_path / 'before'}", "--set", "training.frozen=('core',)"]
    said = two([*words_of(tmp_path / "two"), *start])
    assert f"head: taken from {tmp_path / 'before'}, step " in said
    one([*words_of(tmp_path / "one"), *start], 2)
    check_same(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two" / "start.json").exists()


@pytest.mark.parametrize(("devices", "model"), [(1, 1), (2, 2)])
@pytest.mark.slow
def test_tables_are_updated_by_rows(tmp_path, devices, model):
    share = settings([*ROWS, f"parallel.model={model}"])
    one([*share, *words_of(tmp_path / "one")], 2 * devices)
    two([*share, *words_of(tmp_path / "two")], devices)
    check_same(tmp_path / "one", tmp_path / "two")
