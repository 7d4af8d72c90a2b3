"""The examples train: their loss falls, and they report exact perplexities."""

import pathlib
import subprocess
import sys

import pytest

from examples import linen_transformer, nnx_gru, optax_loop
from zoo import heads

ROOT = pathlib.Path(__file__).parent.parent
EXAMPLES = {"linen": linen_transformer, "nnx": nnx_gru, "optax": optax_loop}
HEADS = {
    "softmax": heads.Softmax(),
    "log-linear": heads.LogLinear(),
    "NCE": heads.NCE(samples=32),
    "importance sampling": heads.ImportanceSampling(samples=32),
    "mixture": heads.MixtureOfSoftmaxes(components=3),
}
# Of each library one head that needs tables, noise or neither; all of them in make test-all.
USUAL = {("linen", "NCE"), ("nnx", "log-linear"), ("optax", "softmax")}
CASES = [
    pytest.param(example, head, marks=() if (example, head) in USUAL else pytest.mark.slow)
    for example in EXAMPLES
    for head in HEADS
]


@pytest.mark.parametrize(("example", "head"), CASES)
@pytest.mark.slow
def test_the_loss_falls(example, head, capsys):
    losses, perplexity = EXAMPLES[example].main(HEADS[head], steps=30)
    assert losses[-1] < losses[0] - 0.3
    assert 1 < perplexity < 60  # of some 150 words
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("step   0: loss ")
    assert said[-1].startswith(f"{type(HEADS[head]).__name__}: exact perplexity {perplexity:.2f} ")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_it_is_a_program(example):
    command = [sys.executable, "-m", EXAMPLES[example].__name__]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Softmax: exact perplexity" in done.stdout
