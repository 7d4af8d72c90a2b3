"""The time and memory of a step, measured beside a run."""

import jax
import pytest

from tests.training import small
from zoo.training import step_shapes


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_steps_are_measured_and_the_run_is_as_before(tmp_path, devices):
    trainer = small.trainer(small.experiment(), tmp_path / "run", devices)
    cost = step_shapes.measure(trainer, 0.05)
    assert 0 < cost.seconds < 60
    leaves = jax.tree.leaves(trainer.initial_state().params)
    assert cost.bytes >= sum(leaf.nbytes for leaf in leaves)
    assert not [*(tmp_path / "run").iterdir()]
    assert step_shapes.measure(trainer, 0).seconds is None
    beside = small.trainer(small.experiment(), tmp_path / "beside", devices)
    assert trainer.train().best == beside.train().best
