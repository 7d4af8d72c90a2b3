"""A background's state is in the carry: devices, batch rows and interruptions change nothing."""

import signal

import jax
import numpy as np
import pytest

from tests.training import small
from zoo.cores import LSTM
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.errors import Interrupted
from zoo.heads import LogLinear
from zoo.models import LanguageModel
from zoo.priors import NGram, TopWords
from zoo.training import loop

MODEL = LanguageModel(
    Lookup(size=6, initial_scale=0.5),
    LSTM(size=7, dropout=0.3),
    LogLinear(initial_scale=0.5, background=NGram(3)),
)
VOCABULARY = Vocabulary(features=(TopWords(7, ("train",)),))


def experiment(**training):
    return small.experiment(model=MODEL, vocabulary=VOCABULARY, **training)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["carried", "sentences"])
def test_the_number_of_devices_changes_nothing_but_rounding(tmp_path, state):
    ends = []
    for count in (1, 2):
        trainer = small.trainer(experiment(state=state, length=4), tmp_path / str(count), count)
        trainer.train()
        ends.append(small.last_state(trainer)[1])
    assert ends[0].carry[1].shape == (4, 2)
    assert (ends[0].carry[1] >= 0).any()
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(one, other, atol=3e-6)


@pytest.mark.slow
def test_resumed_equals_uninterrupted(tmp_path, monkeypatch):
    whole = small.trainer(experiment(), tmp_path / "whole")
    whole.train()
    pieces = small.trainer(experiment(), tmp_path / "pieces")
    step_of = loop.Metrics.step

    def step_and_signal(self, step, progress, results):
        pieces._stop = signal.SIGTERM if step == 2 else None
        return step_of(self, step, progress, results)

    monkeypatch.setattr(loop.Metrics, "step", step_and_signal)
    with pytest.raises(Interrupted):
        pieces.train()
    monkeypatch.undo()
    pieces = small.trainer(experiment(), tmp_path / "pieces")
    pieces.train()
    for kind in ("last", "best"):
        expected, found = (small.last_state(trainer, kind)[1] for trainer in (whole, pieces))
        jax.tree.map(np.testing.assert_array_equal, expected, found)
