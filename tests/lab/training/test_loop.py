"""The loop: when it validates, stops, saves and compiles, and what a run leaves behind."""

import dataclasses
import itertools
import math
import time

import jax
import numpy as np
import optax
import pytest

from tests import examples
from tests.lab.training import small
from tests.marks import slow
from zoo.data.batches import Batches
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.lab.training import loop, tasks
from zoo.lab.training.devices import Devices
from zoo.lab.training.loop import Stopwatch
from zoo.optimizers import SGD, Cosine, Schedule
from zoo.priors import Background, TopWords
from zoo.priors.prior import token_counts

STILL = SGD(learning_rate=0.0)


def test_a_line_comes_before_each_compilation(tmp_path, monkeypatch):
    trainer = small.trainer(small.experiment(epochs=2), tmp_path, log=(log := []))
    step, shapes = trainer.step_function(), itertools.chain("aab", itertools.repeat("b"))

    def logged_step(*arguments):
        log.append("a step")
        return step(*arguments)

    monkeypatch.setattr(trainer, "step_function", lambda: logged_step)
    monkeypatch.setattr(loop, "batch_shapes", lambda batch: next(shapes))
    trainer.train()
    first, second, third = (
        position for position, line in enumerate(log) if line.startswith("compiling")
    )
    assert log[first].startswith("compiling the first step")
    assert log[first + 1] == "a step" and log[first + 2].startswith("first step, with compil")
    assert log[first + 3 : second] == ["a step"]
    assert log[second].startswith("compiling a step of other shapes, after step 2")
    assert log[third] == "compiling the validation."
    assert log[third + 1].startswith("epoch 1, ")


@pytest.mark.slow
def test_training_lowers_the_loss(tmp_path):
    trainer = small.trainer(small.experiment(epochs=8), tmp_path)
    progress = trainer.train()
    losses = [line["epoch_training_loss"] for line in small.metrics(tmp_path)]
    assert len(losses) == progress.epoch == 8
    assert losses[-1] < losses[0] - 0.05
    assert progress.finished
    step, _, saved_progress = small.last_state(trainer)
    assert step == 8 * trainer.task.epoch_steps == trainer.task.total_steps
    assert saved_progress["finished"]


def test_the_best_parameters_are_kept_and_give_the_best_figure(tmp_path):
    # A learning rate so high that the validation loss soon rises.
    log = []
    recipe = small.experiment(epochs=5, optimizer=SGD(learning_rate=10.0))
    trainer = small.trainer(recipe, tmp_path, log=log)
    progress = trainer.train()
    figures = {line["step"]: line["validation_log_perplexity"] for line in small.metrics(tmp_path)}
    best_step = min(figures, key=figures.get)
    assert (progress.best_step, progress.best) == (best_step, figures[best_step])
    step, best, _ = small.last_state(trainer, "best")
    assert step == best_step < trainer.task.total_steps
    # The parameters that are kept are those of that step, not of the last.
    from zoo.lab.evaluation import perplexity

    scores = perplexity.score(
        trainer.task.model,
        best["params"],
        examples.NO_TABLES,
        trainer.task.validation,
        trainer.task.validation_rows,
    )
    assert scores.log_perplexity == pytest.approx(progress.best, abs=1e-6)


def test_early_stopping_waits_for_its_patience(tmp_path):
    recipe = small.experiment(epochs=9, patience=3, optimizer=STILL)
    trainer = small.trainer(recipe, tmp_path)
    progress = trainer.train()
    # The first validation is the best; three more do not improve on it.
    assert (progress.epoch, progress.stale, progress.finished) == (4, 3, True)
    resumed = small.trainer(recipe, tmp_path, log=(log := []))
    assert resumed.train() == progress
    assert "finished" in log[0]


def test_steps_end_a_run_within_an_epoch(tmp_path):
    recipe = small.experiment(epochs=9, steps=7, validate_every=3)
    trainer = small.trainer(recipe, tmp_path)
    assert trainer.task.epoch_steps < 7 < 9 * trainer.task.epoch_steps
    assert trainer.task.total_steps == 7
    assert trainer.train().finished
    step, _, progress = small.last_state(trainer)
    assert (step, progress["finished"]) == (7, True)
    validated = {line["step"] for line in small.metrics(tmp_path)}
    assert validated == {3, trainer.task.epoch_steps, 6, 7}
    assert small.trainer(recipe, tmp_path).train().finished


def test_schedules_end_with_the_last_step(tmp_path):
    recipe = small.experiment(epochs=9, steps=4, optimizer=SGD(schedule=Cosine()))
    trainer = small.trainer(recipe, tmp_path)
    assert trainer.task.total_steps == 4
    # A step that Cosine would take after its end has a rate of 0.
    rate = recipe.training.optimizer.rate(trainer.task.epoch_steps, trainer.task.total_steps)
    assert float(rate(3)) > 0 == float(rate(4))
    recipe_of_many_steps = small.experiment(epochs=2, steps=1000)
    task = small.trainer(recipe_of_many_steps, tmp_path).task
    assert task.total_steps == 2 * task.epoch_steps


@pytest.mark.parametrize(("steps", "setting"), [(4, "steps"), (0, "epochs"), (1000, "epochs")])
def test_a_warm_up_that_is_too_long_names_the_setting_that_bounds_the_steps(
    steps, setting, tmp_path
):
    schedule = SGD(schedule=Cosine(warmup=500))
    recipe = small.experiment(epochs=2, steps=steps, optimizer=schedule)
    with pytest.raises(UserError, match=rf"lower it, or raise training\.{setting}\.$"):
        small.trainer(recipe, tmp_path)


def test_a_run_stopped_early_within_an_epoch_is_finished_for_good(tmp_path):
    recipe = small.experiment(epochs=9, patience=1, validate_every=2, optimizer=STILL)
    trainer = small.trainer(recipe, tmp_path)
    assert trainer.task.epoch_steps > 4
    assert trainer.train().finished
    step, _, progress = small.last_state(trainer)
    assert (step, progress["finished"], progress["index"]) == (4, True, 4)


def test_validations_come_every_so_many_steps_and_at_the_end_of_an_epoch(tmp_path):
    trainer = small.trainer(small.experiment(validate_every=3), tmp_path)
    trainer.train()
    ends = [trainer.task.epoch_steps, 2 * trainer.task.epoch_steps]
    expected = sorted({*range(3, ends[1] + 1, 3), *ends})
    assert [line["step"] for line in small.metrics(tmp_path)] == expected


@pytest.mark.parametrize("state", ["carried", "sentences"])
def test_validation_figures_are_those_of_the_epoch_so_far(tmp_path, state):
    # With a rate of 0 and no dropout the training loss is that of the first parameters.
    model = dataclasses.replace(small.MODEL, core=dataclasses.replace(small.MODEL.core, dropout=0))
    model = dataclasses.replace(model, core=dataclasses.replace(model.core, input_dropout=0))
    recipe = small.experiment(model, state=state, optimizer=STILL)
    trainer = small.trainer(recipe, tmp_path)
    trainer.train()
    from zoo.lab.evaluation import perplexity

    batches = trainer.task.epoch(0)
    params = trainer.initial_state().params
    expected = perplexity.score(
        trainer.task.model, params, examples.NO_TABLES, trainer.task.text, batches
    ).log_perplexity
    losses = [line["epoch_training_loss"] for line in small.metrics(tmp_path)]
    np.testing.assert_allclose(losses, [expected, expected], rtol=1e-5)


def sentences_of(batches: Batches):
    return sorted(
        tuple(part.tolist()) for part in np.split(batches.text.words, batches.text.starts[1:])
    )


def test_the_order_depends_on_the_epoch_and_the_seed_only(tmp_path):
    recipe = small.experiment(shuffle=True)
    first, second = (small.trainer(recipe, tmp_path, devices) for devices in (1, 4))
    np.testing.assert_array_equal(first.task.epoch(1).text.words, second.task.epoch(1).text.words)
    other_seed = small.trainer(small.with_settings(recipe, "training.seed=1"), tmp_path)
    orders = [trainer.task.epoch(epoch) for trainer in (first, other_seed) for epoch in (0, 1)]
    for a, b in itertools.combinations(orders, 2):
        assert a.text.words.tolist() != b.text.words.tolist()
        assert sentences_of(a) == sentences_of(b)
    plain = small.trainer(small.experiment(shuffle=False), tmp_path)
    np.testing.assert_array_equal(plain.task.epoch(0).text.words, plain.task.epoch(1).text.words)


def test_the_steps_of_all_epochs_are_known_before_the_first(tmp_path):
    """Also where their number depends on how well the sentences of an epoch fill the batch rows."""
    recipe = small.experiment(sentences=11, state="sentences", length=2, epochs=9, shuffle=True)
    trainer = small.trainer(recipe, tmp_path)
    steps = [len(trainer.task.epoch(epoch)) for epoch in range(9)]
    assert trainer.task.total_steps == sum(steps)
    assert len({*steps}) > 1


def test_epochs_that_nobody_waits_for_are_estimated(tmp_path, monkeypatch):
    settings = {"sentences": 9, "state": "sentences", "shuffle": True, "length": 4}
    all_counted = small.trainer(small.experiment(**settings, epochs=40), tmp_path).task
    monkeypatch.setattr(tasks, "COUNTED_EPOCHS", 20)
    task = small.trainer(small.experiment(**settings, epochs=40), tmp_path).task
    first = sum(len(task.epoch(epoch)) for epoch in range(20))
    assert task.total_steps == 2 * first
    assert abs(task.total_steps - all_counted.total_steps) < 0.1 * all_counted.total_steps
    millions = small.trainer(small.experiment(**settings, epochs=10**8), tmp_path).task
    assert millions.total_steps == first * 10**8 // 20


def test_a_run_compiles_its_step_once(tmp_path):
    # A size that no other test has: the scoring step is kept from run to run.
    model = dataclasses.replace(small.MODEL, core=dataclasses.replace(small.MODEL.core, size=5))
    with small.compilations() as compiled:
        small.trainer(small.experiment(model, epochs=3, validate_every=4), tmp_path).train()
    for name in ("train_step", "score_step"):
        assert sum(message.startswith(f"Compiling jit({name})") for message in compiled) == 1


@pytest.mark.slow
def test_a_run_of_two_devices_traces_its_step_once(tmp_path, monkeypatch):
    trainer, traces = small.trainer(small.experiment(epochs=3, shuffle=True), tmp_path, 2), []
    loss = trainer.task.loss
    monkeypatch.setattr(
        trainer.task, "loss", lambda *arguments: (traces.append(1), loss(*arguments))[1]
    )
    trainer.train()
    assert len(traces) == 1


def test_every_epoch_has_its_own_order_and_starts_empty(tmp_path, monkeypatch):
    targets, carries = [], []

    def compile(self, step, **static):
        def spied(state, tables, batch, key):
            targets.append(batch.inputs.targets.tolist())
            carries.append(max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(state.carry)))
            return compiled(state, tables, batch, key)

        compiled = compile_of(self, step, **static)
        return spied

    compile_of = Devices.compile
    monkeypatch.setattr(Devices, "compile", compile)
    trainer = small.trainer(small.experiment(epochs=3, shuffle=True), tmp_path)
    trainer.train()
    batches = [trainer.task.epoch(epoch) for epoch in range(3)]
    assert targets == [
        epoch[index].targets.tolist() for epoch in batches for index in range(len(epoch))
    ]
    starts = [step % trainer.task.epoch_steps == 0 for step in range(len(carries))]
    assert [carry == 0 for carry in carries] == starts


@dataclasses.dataclass(frozen=True)
class NotOutsideTraining(Background):
    """Words that the training text has not are impossible."""

    def log_probs(self, words, corpora):
        counts = token_counts(corpora, ("train",))
        return np.array([0.0 if counts[word] else -np.inf for word in words])


@pytest.mark.slow
def test_a_model_that_holds_words_of_the_validation_text_to_be_impossible_is_kept(tmp_path):
    vocabulary = Vocabulary(splits=(), features=(TopWords(20),), background=NotOutsideTraining())
    recipe = small.experiment(small.LOG_LINEAR, sentences=3, vocabulary=vocabulary, epochs=3)
    trainer = small.trainer(recipe, tmp_path, log=(log := []))
    progress = trainer.train()
    assert progress.best == math.inf
    text, trained = trainer.task.validation, set(trainer.task.text.words)
    unseen = [place for place, word in enumerate(text.words) if word not in trained]
    sentence, word = text.position(unseen[0])
    assert text.starts[sentence - 1] + word - 1 == unseen[0]
    spelled = trainer.task.lexicon.words[text.words[unseen[0]]]
    log_text = "\n".join(log)
    assert f"{len(unseen)} of the counted tokens have probability 0" in log_text
    assert f"the first of them {spelled!r}, word {word} of sentence {sentence}" in log_text
    # Kept are the last parameters, for none is better.
    step, best, _ = small.last_state(trainer, "best")
    assert step == progress.best_step == trainer.task.total_steps
    are_equal = jax.tree.map(np.array_equal, best["params"], small.last_state(trainer)[1].params)
    assert all(jax.tree.leaves(are_equal))
    lines = (tmp_path / "metrics.jsonl").read_text()
    assert lines.count('"validation_log_perplexity": "inf"') == 3
    assert "Infinity" not in lines


def test_a_loss_that_is_not_finite_stops_and_names_step_and_checkpoint(tmp_path):
    recipe = small.experiment(epochs=4, checkpoint_every=1, optimizer=SGD(learning_rate=1e38))
    trainer = small.trainer(recipe, tmp_path)
    with pytest.raises(UserError, match=r"not finite .*step (\d+); .* of step (\d+)") as caught:
        trainer.train()
    step, state, progress = small.last_state(trainer)
    assert f"the last good checkpoint is of step {step}, in {tmp_path}" in str(caught.value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))
    assert math.isfinite(progress["loss"])


@dataclasses.dataclass(frozen=True)
class Infinite(Schedule):
    """A learning rate without bounds, which no setting can have."""

    def build(self, peak, epoch_steps, total_steps):
        return optax.constant_schedule(math.inf)


@pytest.mark.parametrize(("clip", "change"), [*slow((0.0, "set")), (5.0, "lower")])
def test_parameters_that_are_not_finite_are_not_saved(tmp_path, clip, change):
    # The loss of step 1 is finite, the update is not.
    recipe = small.experiment(checkpoint_every=1, optimizer=SGD(schedule=Infinite()), clip=clip)
    trainer = small.trainer(recipe, tmp_path)
    message = r"parameters are not finite after step 1; none was saved"
    with pytest.raises(UserError, match=f"{message}.* or {change} training.clip"):
        trainer.train()
    assert small.last_state(trainer) is None


def test_a_summary_counts(tmp_path):
    trainer = small.trainer(small.experiment(), tmp_path, devices=2)
    # 11 words and two marks, 6 wide; an LSTM of 7; a softmax with biases.
    parameters = 13 * 6 + (6 + 7 + 1) * 28 + 13 * 8
    assert trainer.summary().startswith("13 words, 120 training tokens, ")
    assert trainer.summary().endswith(f", {parameters} parameters, 2 device(s)")


@pytest.mark.slow
def test_batches_are_measured_by_the_mean_of_an_epoch(tmp_path):
    trainer = small.trainer(
        small.experiment(sentences=9, state="sentences", shuffle=True), tmp_path
    )
    batches = trainer.task.epoch(0)
    tokens = [batches[index].trained.sum() for index in range(len(batches))]
    assert min(tokens) < max(tokens)
    assert trainer.task.usual_weight == np.mean(tokens) > min(tokens)


# ----------------------------------------------------------- the seconds of training steps


def test_the_watch_stands_still_where_it_is_stopped():
    now = iter([100.0, 103.0, 110.0, 110.0, 150.0, 152.0])  # the times at which it is looked at
    watch = Stopwatch(seconds=5.0, clock=lambda: next(now))
    assert watch.seconds == 5 + 3
    with watch.paused():  # from 110 to 150
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
