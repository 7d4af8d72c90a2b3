"""The rules of MaxText, lm1b and nanodo place a head's parameters on eight devices."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.marks import slow

ROOT = pathlib.Path(__file__).parents[2]


@functools.cache
def results(head):
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.eight_devices", head],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[head]


# Of four devices along "fsdp" and two along "tensor".
SHARDS = {
    "softmax": {"weights": [[96, 32], [48, 8]], "bias": [[96], [48]]},
    "adaptive": {
        "head": [[32, 32], [16, 8]],
        "head_bias": [[32], [16]],
        "projection_0": [[32, 8], [8, 8]],
        "tail_0": [[64, 8], [32, 2]],
    },
    "mixture": {
        "weights": [[96, 16], [48, 4]],
        "bias": [[96], [48]],
        "prior": [[32, 2], [8, 2]],
        "projection": [[32, 32], [8, 32]],
        "projection_bias": [[32], [32]],
    },
    "log-linear": {"weights": [[96, 32], [96, 8]], "bias": [[96], [96]]},
}
# Of eight devices along "data": each holds an eighth of every array but biases.
UNSHARDED = {"bias", "head_bias", "projection_bias"}
# Each starts a program.
ONE_AT_ONCE = pytest.mark.parametrize(
    "head", ["softmax", *slow(*(head for head in SHARDS if head != "softmax"))]
)


@ONE_AT_ONCE
def test_rules_for_words_and_hidden_states(head):
    result = results(head)
    assert result["shards"] == SHARDS[head]
    np.testing.assert_allclose(result["losses"], result["one device"], rtol=2e-5)
    assert result["losses"][-1] < result["losses"][0] - 0.1


@ONE_AT_ONCE
def test_names_of_axes_of_a_mesh(head):
    for name, (shape, part) in results(head)["nanodo"].items():
        assert np.prod(part) == np.prod(shape) // (1 if name in UNSHARDED else 8), name
