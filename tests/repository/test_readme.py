"""The Python of README and of the pages behind its doors does what they say."""

import pathlib
import re

import numpy as np
import pytest

from tests import examples
from zoo import Experiment

README = pathlib.Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"


def python_of(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def snippets():
    """A softmax, heads with features and noise, and a Flax module."""
    return python_of(DOCS / "your_model.md")


def test_the_head_of_readme_has_the_loss_of_its_probabilities():
    (snippet,) = python_of(README)
    names = {}
    exec(snippet, names)
    log_probs = names["head"].log_probs(names["params"], names["tables"], names["hidden"])
    np.testing.assert_allclose(names["loss"], -log_probs[..., 0].mean(), rtol=1e-6)


def test_what_readme_shows_of_the_french_model_is_what_it_gives(monkeypatch):
    """The values are those of the walk in tests/lab/export/test_standalone_models.py."""
    monkeypatch.chdir(README.parent)
    (session,) = re.findall(r"```pycon\n(.*?)```", README.read_text(), re.DOTALL)
    examples.run_docstring(session, {})


def test_readme_is_short():
    assert len(README.read_text().splitlines()) <= 120


def test_configs_are_experiments():
    for snippet in python_of(DOCS / "configs.md"):
        namespace = {}
        exec(snippet, namespace)
        assert isinstance(namespace["get_config"](), Experiment)


@pytest.mark.slow
def test_the_head_scores_and_fits_a_flax_module(snippets):
    namespace = {}
    exec(snippets[0], namespace)
    losses, weights = namespace["losses"], namespace["weights"]
    assert losses.shape == (2, 4)
    np.testing.assert_allclose(losses, -namespace["log_probs"][..., 0], rtol=1e-6)
    np.testing.assert_allclose(weights * 7, [[1, 1, 1, 1], [1, 1, 1, 0]], rtol=1e-6)
    np.testing.assert_allclose(namespace["loss"], np.sum(weights * losses), rtol=1e-6)
    exec(snippets[1], namespace)
    assert namespace["named"].log_background.shape == (3,)
    total = np.exp(namespace["log_prob"])  # of the first word; every target is that
    assert total.shape == (2, 4)
    assert namespace["loss"] > 0
    assert (total > 0).all()
    assert (total < 1).all()
    exec(snippets[2], namespace)
    assert namespace["loss"] > 0
    assert namespace["variables"].keys() == {"params", "tables"}
    exec(snippets[3], namespace)
    assert namespace["loss"] > 0


@pytest.mark.slow
def test_lexicons_priors_and_layouts(snippets):
    namespace = {}
    for snippet in (snippets[0], snippets[1], *snippets[4:]):
        exec(snippet, namespace)
    assert namespace["words"].words == ("</s>", "<unk>", "the", "cat", "sat")
    assert namespace["ids"].tolist() == [2, 1, 0]
    assert namespace["known"].feature_names and namespace["known"].background_tables
    assert namespace["loss"] > 0
    spec = namespace["params"]["weights"].sharding.spec
    assert tuple(spec) == ("model",)
    assert namespace["kl_divergence"](namespace["teacher"], namespace["student"]).shape == (2, 4)
    assert namespace["drawn"].shape == (2, 4)


def test_every_named_make_target_and_file_is_there():
    makefile = (README.parent / "Makefile").read_text()
    for page in (README, *DOCS.rglob("*.md")):
        text = page.read_text()
        for target in set(re.findall(r"`?make ([a-z-]+)`", text)):
            assert f"\n{target}:" in makefile, target
        for path in re.findall(r"\]\(([\w/.]+)(?:#[\w-]+)?\)", text):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"
