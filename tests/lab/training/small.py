"""A tiny experiment on random words: it trains in milliseconds a step."""

import contextlib
import dataclasses
import json
import logging

import jax
import numpy as np

from zoo import configuration
from zoo.cores import LSTM
from zoo.data import Corpus, Source
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Features, Lookup
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import LogLinear, Softmax
from zoo.lab.runs import seen_texts
from zoo.lab.runs.checkpoints import Checkpoints
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks
from zoo.lab.training.loop import Trainer
from zoo.models import LanguageModel
from zoo.optimizers import SGD
from zoo.priors import Morphology, TopWords, Unigram

# Larger weights than the zoo's own: the little that these tests train must show.
MODEL = LanguageModel(
    Lookup(size=6, initial_scale=0.5),
    LSTM(size=7, dropout=0.3, input_dropout=0.2),
    Softmax(initial_scale=0.5),
)
# Needs tables of the words, in and out: some features are a word's own, others are shared.
LOG_LINEAR = LanguageModel(
    Features(size=6, initial_scale=0.5), MODEL.core, LogLinear(initial_scale=0.5)
)
WITH_FEATURES = Vocabulary(
    features=(TopWords(count=4), Morphology()), background=Unigram(smoothing=0.5)
)
# Settings of `experiment` by the model's name.
MODELS = {
    "softmax": {"model": MODEL},
    "log-linear": {"model": LOG_LINEAR, "vocabulary": WITH_FEATURES},
}


@dataclasses.dataclass(frozen=True)
class RandomWords(Source):
    """Sentences of one to nine words out of `words`, tagged by the last digit of their number."""

    sentences: int = 20
    seed: int = 0
    words: int = 11

    def splits(self):
        return ("train", "validation")

    def read(self, split):
        generator = np.random.default_rng((self.seed, len(split)))
        sentences = [
            [
                f"word{word}"
                for word in generator.integers(self.words, size=generator.integers(1, 10))
            ]
            for _ in range(self.sentences)
        ]
        features = [[(f"Digit:{word[-1]}",) for word in sentence] for sentence in sentences]
        return Corpus(split, sentences, features)


def experiment(model=None, sentences=20, vocabulary=None, words=11, **training) -> Experiment:
    """Batches of 4 batch rows and 5 positions, dropout, SGD; `training` changes what it names."""
    settings = {"batch": 4, "length": 5, "epochs": 2, "optimizer": SGD(learning_rate=1.0)}
    return Experiment(
        data=RandomWords(sentences, words=words),
        vocabulary=vocabulary or Vocabulary(),
        model=model or MODEL,
        training=Training(**(settings | training)),
        evaluation=Evaluation(state="sentences", batch=3, length=6),
    )


def trainer(recipe: Experiment, workdir, devices=1, log=None) -> Trainer:
    """A trainer of the experiment in a folder, which appends its lines to the list `log`."""
    workdir.mkdir(exist_ok=True)
    return trainer_of(tasks.prepare(recipe, devices), recipe, workdir, devices, log)


def trainer_of(task, recipe: Experiment, workdir, devices=1, log=None) -> Trainer:
    """The same of a task, whatever its model."""
    say = [].append if log is None else log.append
    return Trainer(task, recipe.training, workdir, devices, say, recipe.init_from, recipe.parallel)


def run_in(folder, recipe: Experiment):
    """Trains the experiment in a folder, as train.py does, and gives the folder."""
    workdir = Workdir(folder)
    workdir.claim(recipe)
    training = trainer(recipe, workdir.path)
    for name, lexicon in training.task.lexicons.items():
        workdir.save_lexicon(lexicon, name)
    if (seen_record := training.task.seen_texts({})) is not None:
        seen_texts.write_record(workdir, seen_record)
    training.train()
    return workdir.path


def last_state(trained: Trainer, kind="last"):
    """(step, arrays, progress) of the newest checkpoint of a trainer's folder."""
    checkpoints = Checkpoints(trained.workdir / "checkpoints")
    like = trained.initial_state()
    try:
        return checkpoints.restore(kind, {"params": like.params} if kind == "best" else like)
    finally:
        checkpoints.close()


def on_devices(state, devices):
    """A state on the host, or on one device, as a step of the devices takes it."""
    return devices.for_steps(jax.device_put(state, devices.layouts(state)))


def on_host(state, devices):
    """The inverse of `on_devices`."""
    return jax.device_get(devices.state_to_mesh(state))


def metrics(workdir) -> list[dict]:
    """The lines of metrics.jsonl without the seconds, in which no two runs agree."""
    lines = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def timeless(progress: dict) -> dict:
    """The progress of a checkpoint without the seconds."""
    return {name: value for name, value in progress.items() if name != "seconds"}


def with_settings(recipe: Experiment, *settings: str) -> Experiment:
    """The experiment after --set."""
    return configuration.apply_settings(recipe, list(settings))


class _Messages(logging.Handler):
    """Keeps the messages of a logger."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def compilations():
    """What JAX says of all that it compiles within: messages that begin with "Compiling "."""
    # JAX's logger does not hand its messages on, so caplog sees none.
    log, handler = logging.getLogger("jax"), _Messages()
    log.addHandler(handler)
    messages = []
    try:
        with jax.log_compiles():
            yield messages
    finally:
        log.removeHandler(handler)
        messages += [message for message in handler.messages if message.startswith("Compiling ")]
