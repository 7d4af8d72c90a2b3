"""Kinds of training in two processes: words, pairs in buckets, tables updated by rows, and start
values of another run. Each ends as it does in one process with as many devices."""

import jax
import numpy as np
import pytest

from tests.lab.training import processes
from tests.repository.test_configs import LEMMAS

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


KINDS = {
    "words": words_of,
    "pairs": lambda workdir: [*settings(PAIRS), str(workdir)],
    "rows": lambda workdir: [*settings(ROWS), *words_of(workdir)],
}


def check_same(first, second):
    """Of two folders: the same to the bit."""
    expected, end = map(processes.end_apart_from_devices, (first, second))
    assert (expected[0], expected[2]) == (end[0], end[2])
    jax.tree.map(np.testing.assert_array_equal, expected[1], end[1])


@pytest.mark.parametrize(("devices", "model"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_two_processes_train_to_the_bit_what_one_with_their_devices_does(
    tmp_path, kind, devices, model
):
    share = ["--set", f"parallel.model={model}"]
    processes.train_alone([*KINDS[kind](tmp_path / "one"), *share], 2 * devices)
    processes.train([*KINDS[kind](tmp_path / "two"), *share], devices=devices)
    check_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_a_run_starts_with_values_of_another(tmp_path):
    processes.train_alone(words_of(tmp_path / "before"), 1)
    start = ["--set", f"init_from={tmp_path / 'before'}", "--set", "training.frozen=('core',)"]
    printed = processes.train([*words_of(tmp_path / "two"), *start])
    assert f"head: taken from {tmp_path / 'before'}, step " in printed
    processes.train_alone([*words_of(tmp_path / "one"), *start], 2)
    check_same(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two" / "start.json").exists()
