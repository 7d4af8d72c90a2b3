"""Every config's training step lowers for accelerators that are not here."""

import jax
import numpy as np
import pytest

import configs
from tests.lab.training import small
from tests.repository.test_configs import shrunk
from zoo.lab.training import step_shapes
from zoo.lab.training.loop import Trainer

PLATFORMS = ("tpu", "cuda")
# The others in make test-all.
AT_ONCE = {"lm1b_lstm_2048_512"}
CASES = [
    name if name in AT_ONCE else pytest.param(name, marks=pytest.mark.slow)
    for name in configs.names()
]
SIZE = 793_471  # words of the 1 Billion Word benchmark


@pytest.mark.parametrize("name", CASES)
def test_the_step_of_a_config_lowers(name, tmp_path):
    recipe = shrunk(configs.load(name), tmp_path)
    trainer = small.trainer(recipe, tmp_path / "run")
    shapes = step_shapes.from_trainer(trainer)
    exported = shapes.lowered(*PLATFORMS)
    assert exported.platforms == PLATFORMS
    # What comes out is what goes in again.
    count = len(jax.tree.leaves(shapes.arguments[0]))
    assert [str(aval) for aval in exported.out_avals[:count]] == [
        str(aval) for aval in exported.in_avals[:count]
    ]


@pytest.mark.parametrize("name", [name for name in configs.names() if name.startswith("lm1b")])
@pytest.mark.slow
def test_the_step_of_a_billion_words_lowers_at_its_full_size(name):
    recipe = configs.load(name)
    shapes = step_shapes.from_language_model(recipe, step_shapes.ranked_lexicon(SIZE))
    assert shapes.lowered(*PLATFORMS).platforms == PLATFORMS
    table = max(leaf.shape for leaf in jax.tree.leaves(shapes.arguments[0].params))
    assert table[0] == SIZE or "cnn_softmax" in name or "char" in name or "cnn_inputs" in name


def test_shapes_of_a_step_are_those_of_the_trainer(tmp_path):
    recipe = small.experiment()
    trainer: Trainer = small.trainer(recipe, tmp_path / "run")
    trainer_shapes = step_shapes.from_trainer(trainer)
    model_shapes = step_shapes.from_language_model(recipe, trainer.task.lexicon)
    assert jax.tree.map(str, trainer_shapes.arguments) == jax.tree.map(str, model_shapes.arguments)


def test_a_ranked_lexicon_is_zipf_s():
    words = step_shapes.ranked_lexicon(7)
    assert len(words) == 7 and words.boundary_id == 0
    np.testing.assert_array_equal(words.counts[:4], [10**8, 5 * 10**7, 33333334, 25 * 10**6])
