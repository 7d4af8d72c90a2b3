"""Masks of words and states, windows and averages on several devices: the same but for rounding."""

import jax
import numpy as np
import pytest

from tests.training import small
from tests.training.test_resume import RECIPES


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 4])
def test_the_number_of_devices_changes_nothing_but_rounding(tmp_path, devices):
    ends = []
    for count in (1, devices):
        trainer = small.trainer(RECIPES["regularised"], tmp_path / str(count), count)
        progress = trainer.train()
        ends.append((small.last_state(trainer)[1].params, progress.validations))
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=2e-5),
        ends[0][0],
        ends[1][0],
    )
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-5)
