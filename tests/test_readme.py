"""README's Python does what README says."""

import pathlib
import re

import numpy as np
import pytest

from zoo import Experiment

README = pathlib.Path(__file__).parent.parent / "README.md"


@pytest.fixture(scope="module")
def snippets():
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_config_is_an_experiment(snippets):
    namespace = {}
    exec(snippets[0], namespace)
    assert isinstance(namespace["get_config"](), Experiment)


def test_the_head_scores_and_fits_a_flax_module(snippets):
    namespace = {}
    exec(snippets[1], namespace)
    loss = namespace["loss"]
    assert loss.shape == (2, 4)
    np.testing.assert_allclose(loss, -namespace["log_probs"][..., 0], rtol=1e-6)
    hidden, targets = namespace["hidden"], namespace["targets"]
    exec(snippets[2], namespace)
    assert namespace["named"].log_background.shape == (3,)
    total = np.exp(namespace["log_prob"])  # of the first word; every target is that
    assert namespace["loss"].shape == total.shape == (2, 4)
    assert (total > 0).all()
    assert (total < 1).all()
    exec(snippets[3], namespace)
    head, lexicon = namespace["head"], namespace["lexicon"]
    decoder, tables = namespace["Decoder"](head, lexicon), head.tables(lexicon)
    variables = decoder.init(namespace["jax"].random.key(0), tables, hidden, targets)
    assert decoder.apply(variables, tables, hidden, targets).shape == (2, 4)


def test_every_named_make_target_and_file_is_there():
    text = README.read_text()
    makefile = (README.parent / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z-]+)", text)):
        assert f"\n{target}:" in makefile, target
    for path in re.findall(r"\]\(([\w/.]+)\)", text):
        assert (README.parent / path).is_file(), path
