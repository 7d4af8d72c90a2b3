"""The examples train: their loss falls, and they report exact perplexities."""

import ast
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from examples import (
    linen_transformer,
    nnx_gru,
    optax_loop,
    sasrec,
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


def test_films_of_a_viewer_are_read_in_the_order_of_time(tmp_path):
    ratings = ["user item rating time", "7 40 3 9", "2 40 5 30", "7 90 1 8", "7 55 2 9", "2 90 4 7"]
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr(sasrec.RATINGS, "\n".join(ratings))
    viewers = sasrec.read_viewers(tmp_path / "a.whl")  # films 40, 55 and 90 are 0, 1 and 2
    assert [films.tolist() for films in viewers] == [[2, 0], [2, 0, 1]]


def test_windows_of_films_end_where_they_should():
    films = np.arange(100, 100 + sasrec.LENGTH + 9)
    rows, sizes = sasrec.windows([films, films], [3, sasrec.LENGTH + 8])
    assert sizes.tolist() == [3, sasrec.LENGTH + 1]
    assert rows[0].tolist() == [100, 101, 102] + [0] * (sasrec.LENGTH - 2)
    assert rows[1].tolist() == [*range(107, 107 + sasrec.LENGTH + 1)]


def test_hit_rate_and_gain_of_a_place():
    expected = [[0, 0], [1, 1], [1, 0.5], [1, 1 / np.log2(11)]]
    np.testing.assert_allclose(sasrec.metrics(np.array([0, 1, 3, 10])), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", sasrec.HEADS)
def test_a_recommender_learns_which_film_follows(loss, monkeypatch):
    """Films in a circle, in parts of unequal lengths: the last film, held out, is known."""
    monkeypatch.setattr(sasrec, "BATCH", 16)
    starts, lengths = np.arange(0, 640, 5), np.resize([5, 21, 67], 128)
    viewers = [np.arange(*ends) % 40 for ends in zip(starts, starts + lengths, strict=True)]
    training = [films[:-1] for films in viewers]
    params = sasrec.train(sasrec.HEADS[loss], training, 40, 0.01, 200, seed=0)
    hit_rate, gain = sasrec.metrics(sasrec.places(params, viewers)).mean(axis=0)
    assert hit_rate > 0.95 and 0.7 < gain <= hit_rate
    guess = sasrec.places(sasrec.initial_parameters(40, 0), viewers)
    assert (guess > 0).mean() < 0.6
