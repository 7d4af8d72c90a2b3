"""A recipe whose sizes are not those of the stored parameters is refused at once."""

import dataclasses
import json

import jax
import pytest

from tests.malformed import readers
from zoo import configuration
from zoo.errors import UserError
from zoo.evaluation.run import Run
from zoo.runs.checkpoints import Checkpoints
from zoo.runs.workdir import Workdir


@pytest.fixture
def run(tmp_path):
    """The folder of a run with a checkpoint."""
    workdir = Workdir(tmp_path / "run")
    workdir.claim(readers.EXPERIMENT)
    readers.LEXICON.save(workdir.path / "lexicon.npz")
    params = readers.MODEL.init(jax.random.key(0), readers.LEXICON)
    checkpoints = Checkpoints(workdir.path / "checkpoints", ("best",))
    checkpoints.save("best", 1, {"params": params}, {"step": 1})
    checkpoints.close()
    return workdir.path


@pytest.mark.parametrize("field", ["model.core.layers", "model.core.size", "model.embedding.size"])
def test_a_billion_is_refused_at_once(run, field):
    assert Run.load(run).checkpoint == 1
    recipe = configuration.changed(readers.EXPERIMENT, {field: 10**9})
    (run / "experiment.json").write_text(json.dumps(configuration.to_json(recipe)))
    with pytest.raises(UserError, match=rf"best has 6 arrays of 120 numbers .*{field}=1000000000"):
        Run.load(run)


def test_rows_that_no_memory_holds_are_refused(run):
    evaluation = dataclasses.replace(readers.EXPERIMENT.evaluation, batch=10**13)
    recipe = dataclasses.replace(readers.EXPERIMENT, evaluation=evaluation)
    (run / "experiment.json").write_text(json.dumps(configuration.to_json(recipe)))
    with pytest.raises(UserError, match=r"evaluation.batch=10000000000000 x .* needs at least"):
        Run.load(run)
