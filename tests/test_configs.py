"""Every config is a recipe that works: shrunk, it takes a step."""

import dataclasses

import pytest

import configs
from tests.training import small
from zoo.data import Conllu, Text
from zoo.data.micro import Micro
from zoo.experiment import Experiment
from zoo.optimizers import Constant

LEMMAS = ("nouns", "adjectives", "verbs", "places", "quantities", "years")
SENTENCE = """# text = du pain
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\tGender=Masc|Number=Sing\t3\tdet\t_\t_
3\tPain{}\tpain\tNOUN\t_\tGender=Masc\t0\troot\t_\t_

"""


def shrunk_data(source, folder):
    """The same kind of source with a handful of sentences."""
    if isinstance(source, Micro):
        return Micro(
            **dict.fromkeys(LEMMAS, 2), train_sentences=9, validation_sentences=3, test_sentences=3
        )
    text = {
        Text: "one two three\nfour <unk> two\n" * 4,
        Conllu: "".join(SENTENCE.format(number % 3) for number in range(9)),
    }[type(source)]
    (folder / "text").write_text(text)
    path = str(folder / "text")
    return dataclasses.replace(
        source, train=path, validation=path, tests=(path,) * len(source.tests)
    )


def shrunk(experiment: Experiment, folder) -> Experiment:
    """The experiment with the smallest sizes that it can have."""
    model, training = experiment.model, experiment.training
    return dataclasses.replace(
        experiment,
        data=shrunk_data(experiment.data, folder),
        model=dataclasses.replace(
            model,
            embedding=dataclasses.replace(model.embedding, size=8),
            core=dataclasses.replace(model.core, size=8),
        ),
        training=dataclasses.replace(
            training,
            batch=4,
            length=5,
            epochs=1,
            optimizer=dataclasses.replace(training.optimizer, schedule=Constant()),
        ),
        evaluation=dataclasses.replace(experiment.evaluation, lanes=2, length=5),
    )


@pytest.mark.parametrize("name", configs.names())
def test_a_config_says_what_it_is(name):
    summary = configs.summary(name)
    assert 10 < len(summary) < 90
    assert summary.endswith(".")
    assert isinstance(configs.load(name), Experiment)
    text = (configs.FOLDER / f"{name}.py").read_text()
    assert f"python train.py --config {name} --workdir " in text


@pytest.mark.parametrize("name", configs.names())
def test_a_config_shrunk_takes_a_step(name, tmp_path):
    trainer = small.trainer(shrunk(configs.load(name), tmp_path), tmp_path / "run")
    progress = trainer.train()
    assert progress.finished
    assert progress.best < 20
    assert small.last_state(trainer)[0] == trainer.epoch_steps >= 1
