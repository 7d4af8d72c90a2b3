"""The seconds of training steps."""

import itertools
import time

import pytest

from tests.training import small
from zoo.training.loop import Stopwatch


def test_the_watch_stands_still_where_it_is_stopped():
    now = iter([100.0, 103.0, 110.0, 110.0, 150.0, 152.0])  # the times at which it is looked at
    watch = Stopwatch(seconds=5.0, clock=lambda: next(now))
    assert watch.seconds == 5 + 3
    with watch.stopped():  # from 110 to 150
        assert watch.seconds == 5 + 10
        next(now)
    assert watch.seconds == 5 + 3 + 7 + 2


@pytest.mark.slow
def test_neither_compilation_nor_validation_is_training(tmp_path):
    trainer = small.trainer(small.experiment(epochs=3), tmp_path)
    validate, compiled = trainer.task.validate, trainer.step_function()
    steps = itertools.count()

    def slow_validation(*arguments):
        time.sleep(0.25)
        return validate(*arguments)

    def step(*arguments):
        if next(steps) == 0:
            time.sleep(0.25)
        return compiled(*arguments)

    trainer.task.validate, trainer.step_function = slow_validation, lambda: step
    begun = time.perf_counter()
    progress = trainer.train()
    assert 0 < progress.seconds < time.perf_counter() - begun - 1
    assert trainer.train().seconds == progress.seconds
