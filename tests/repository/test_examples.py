"""The examples train: their loss falls, and they report exact perplexities."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

from examples import (
    linen_transformer,
    nnx_gru,
    optax_loop,
)
from zoo import heads

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = {
    "linen": linen_transformer,
    "nnx": nnx_gru,
    "optax": optax_loop,
}
HEADS = {
    "softmax": heads.Softmax(),
    "log-linear": heads.LogLinear(),
    "NCE": heads.NCE(samples=32),
    "importance sampling": heads.ImportanceSampling(samples=32),
    "mixture": heads.MixtureOfSoftmaxes(components=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_loss_falls(example, head, capsys):
    losses, perplexity = EXAMPLES[example].main(HEADS[head], steps=30)
    assert losses[-1] < losses[0] - 0.3
    assert 1 < perplexity < 80  # of 229 words
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("step   0: loss ")
    assert lines[-1].startswith(f"{type(HEADS[head]).__name__}: exact perplexity {perplexity:.2f} ")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_it_is_a_program(example):
    command = [sys.executable, "-m", EXAMPLES[example].__name__]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Softmax: exact perplexity" in done.stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_lines_for_the_head_are_counted(example):
    path = pathlib.Path(EXAMPLES[example].__file__)
    lines = path.read_text(encoding="utf-8").splitlines()
    count = sum(line.endswith("  # zoo") for line in lines)
    page = (ROOT / "docs" / "your_model.md").read_text(encoding="utf-8")
    (documented_count,) = re.findall(
        rf"^\| `{EXAMPLES[example].__name__}` \| .* \| (\d+) \|$", page, re.MULTILINE
    )
    assert int(documented_count) == count


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_line_for_the_head_is_left_out(example):
    """What names something of zoo, or what a head needs, stands on lines that are counted, but for
    the functions' own first lines."""
    source = pathlib.Path(EXAMPLES[example].__file__).read_text(encoding="utf-8")
    lines, tree = source.splitlines(), ast.parse(source)
    imported = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "zoo"
    ]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    uses = [
        node
        for node in ast.walk(tree)
        if getattr(node, "id", None) in names or getattr(node, "value", None) in ("tables", "noise")
    ]
    for node in (*imported, *uses):
        line = lines[node.lineno - 1]
        assert line.endswith("  # zoo") or line.startswith("def "), line
