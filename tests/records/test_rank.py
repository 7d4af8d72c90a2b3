"""Ranks of log-probability matrices: of matrices by hand, and of heads on random contexts."""

import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from records import rank
from tests import examples
from zoo.errors import UserError
from zoo.heads import MixtureOfContexts, MixtureOfSoftmaxes, Softmax
from zoo.lab.evaluation.run import short_names


def test_the_rank_of_a_product_by_hand(random):
    matrix = random.normal(size=(19, 3)) @ random.normal(size=(3, 11))
    spectrum = rank.spectrum(matrix.astype(np.float32))
    assert (spectrum.rank, spectrum.bound) == (3, 11)
    assert (np.diff(spectrum.singular_values) <= 0).all()


@pytest.mark.parametrize(
    ("head", "bounded"),
    [
        (Softmax(), True),
        (MixtureOfContexts(components=3), True),
        (MixtureOfSoftmaxes(components=3), False),
    ],
)
def test_only_a_mixture_of_softmaxes_passes_the_bound(random, head, bounded):
    size, lexicon = 4, examples.plain_lexicon(29)
    params = examples.random_params(head, random, size, lexicon)
    hidden = jnp.asarray(random.normal(size=(23, size)), jnp.float32)
    spectrum = rank.spectrum(np.asarray(head.log_probs(params, head.tables(lexicon), hidden)))
    assert (spectrum.rank <= size + 2) == bounded
    assert spectrum.rank == (size + 2 if bounded else 23)


def test_the_report_prints_ranks_and_draws(tmp_path, trained):
    lines = []
    rank.report([str(trained)], 7, "validation", str(tmp_path / "rank.png"), lines.append)
    assert "rank " in lines[0]
    assert "7 contexts of validation" in lines[0]
    assert (tmp_path / "rank.png").stat().st_size > 1000


def test_impossible_words_have_no_rank(tmp_path, trained, monkeypatch):
    matrix = np.array([[0, -np.inf], [-1, -1]])
    monkeypatch.setattr(rank, "log_prob_matrix", lambda *arguments: matrix)
    with pytest.raises(UserError, match="gives some words probability 0"):
        rank.report([str(trained)], 2, "validation", str(tmp_path / "rank.png"))


def test_runs_of_one_name_are_told_apart(tmp_path, trained, monkeypatch):
    folders = [str(shutil.copytree(trained, tmp_path / name / "seed1")) for name in "ab"]
    monkeypatch.setattr(rank, "log_prob_matrix", lambda *arguments: np.eye(3))
    drawn_curves = {}
    monkeypatch.setattr(rank, "draw", lambda curves, *arguments: drawn_curves.update(curves))
    rank.report(folders, 3, "validation", str(tmp_path / "rank.png"), print)
    assert [*drawn_curves] == [f"{folder}: rank 3" for folder in folders]
    with pytest.raises(UserError, match=r"^runs/a and runs//a are one folder: give each run once"):
        short_names(["runs/a", "runs/b", "runs//a"])
