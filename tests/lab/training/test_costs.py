"""Runs that cannot fit the memory are refused before any of it is taken; a step is measured."""

import dataclasses

import jax
import pytest

from tests import examples
from tests.lab.training import small
from zoo.base.arrays import memory
from zoo.cores import LSTM
from zoo.errors import UserError
from zoo.heads import NCE, MixtureOfSoftmaxes
from zoo.lab.training import costs
from zoo.optimizers import Adam

GB = 10**9


@pytest.mark.parametrize(
    ("setting", "size"),
    [
        # Words, targets, places and masks take 18 bytes of a position, its vector 4 x 6.
        ("training.length=1000000000000", f"{4 * 10**12 * 42:,} bytes (168.0 TB)"),
        ("training.batch=1000000000000", f"{5 * 10**12 * 42:,} bytes (210.0 TB)"),
        ("evaluation.batch=9000000000", f"{6 * 9 * 10**9 * 42:,} bytes (2.3 TB)"),
        ("evaluation.length=9000000000", f"{3 * 9 * 10**9 * 42:,} bytes (1.1 TB)"),
        ("model.core.layers=100000", f"{10**11:,} bytes (100.0 GB)"),
        ("model.core.size=3000000000", f"{12 * 10**9:,} bytes (12.0 GB)"),
        ("model.embedding.size=3000000000000000000000", f"{12 * 10**21:,} bytes (12,000.0 EB)"),
        ("model.head.components=3000000000", f"{12 * 10**9:,} bytes (12.0 GB)"),
        ("model.head.sampled.samples=3000000000", "needs at least"),
    ],
)
def test_a_slip_of_zeros_is_refused_with_both_numbers_of_bytes(
    monkeypatch, tmp_path, setting, size
):
    monkeypatch.setattr(memory, "device_memory", lambda: 8 * GB)
    head = MixtureOfSoftmaxes() if "components" in setting else small.MODEL.head
    if "samples" in setting:
        head, setting = NCE(), setting.replace(".sampled", "")
    recipe = small.experiment(dataclasses.replace(small.MODEL, head=head))
    recipe = small.with_settings(recipe, setting)
    before = len(jax.live_arrays())
    with pytest.raises(UserError) as caught:
        small.trainer(recipe, tmp_path)
    assert len(jax.live_arrays()) == before
    message = str(caught.value)
    name = setting.partition("=")[0]
    assert name in message
    assert size in message
    assert "and there are 8,000,000,000 bytes (8.0 GB): give a smaller number" in message


def test_the_state_is_measured_by_its_shapes(layers=2):
    model = dataclasses.replace(small.MODEL, core=LSTM(size=7, layers=layers))
    recipe = small.experiment(model, optimizer=Adam(), average=0.9)
    lexicon = examples.lexicon()
    # Thirteen words, 6 wide; LSTMs of 7; a softmax with biases.
    params = 13 * 6 + (6 + 7 + 1) * 28 + (layers - 1) * (7 + 7 + 1) * 28 + 13 * 8
    carry = layers * 4 * (7 + 7)
    label, size = [*costs.memory_needs(recipe, (lexicon,))][-1]
    assert "parameters, optimiser, carry" in label
    # The parameters, two moments and an average; counters of the optimiser's besides.
    assert 0 <= size - 4 * (4 * params + carry) <= 32
    _, on_three = [*costs.memory_needs(recipe, (lexicon,), 3)][-1]
    assert on_three == 3 * size


def test_what_fits_is_let_through(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "device_memory", lambda: 10**6)
    small.trainer(small.experiment(), tmp_path)
    monkeypatch.setattr(memory, "device_memory", lambda: None)  # cannot be told
    lexicon, _ = (recipe := small.with_settings(small.experiment(), "training.length=999")).build()
    costs.check(recipe, (lexicon,), jax.devices()[:1])
    monkeypatch.setattr(memory, "device_memory", lambda: 10**6)
    recipe = small.with_settings(recipe, "training.length=99999")
    with pytest.raises(UserError, match=r"training.batch=4 x training.length=99999 needs at least"):
        costs.check(recipe, (lexicon,), jax.devices()[:1])


def test_the_memory_of_this_machine():
    memory_bytes = memory.host_memory()
    assert memory_bytes is None or 10**8 < memory_bytes < 10**15


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_steps_are_measured_and_the_run_is_as_before(tmp_path, devices):
    trainer = small.trainer(small.experiment(), tmp_path / "run", devices)
    cost = costs.measure(trainer, 0.05)
    assert 0 < cost.seconds < 60
    leaves = jax.tree.leaves(trainer.initial_state().params)
    assert cost.bytes >= sum(leaf.nbytes for leaf in leaves)
    assert not [*(tmp_path / "run").iterdir()]
    assert costs.measure(trainer, 0).seconds is None
    beside = small.trainer(small.experiment(), tmp_path / "beside", devices)
    assert trainer.train().best == beside.train().best
