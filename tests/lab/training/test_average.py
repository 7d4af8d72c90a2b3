"""The moving average of the parameters, by a loop of numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.lab.training import small
from zoo.lab.evaluation import perplexity
from zoo.lab.training import average
from zoo.optimizers import SGD


def test_the_average_follows_the_formula_and_leaves_the_training_alone():
    decay, rate = 0.3, 0.5
    optimizer = optax.chain(optax.sgd(rate), average.keep_average(decay))
    params = {"a": jnp.array([1.0, -2.0]), "b": {"c": jnp.array(3.0)}}
    state = optimizer.init(params)
    expected = by_hand = np.array([1.0, -2.0, 3.0])
    for step in range(1, 5):
        gradients = {"a": jnp.array([0.1, step]), "b": {"c": jnp.array(-1.0)}}
        updates, state = optimizer.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        by_hand = by_hand - rate * np.array([0.1, step, -1.0])
        used = min(decay, (1 + step) / (10 + step))
        assert used == (decay if step >= 3 else (1 + step) / (10 + step))
        expected = used * expected + (1 - used) * by_hand
    np.testing.assert_allclose([*params["a"], params["b"]["c"]], by_hand, rtol=1e-6)
    judged = average.params_to_evaluate(params, state)
    np.testing.assert_allclose([*judged["a"], judged["b"]["c"]], expected, rtol=1e-6)


def test_the_mean_begins_when_told_and_leaves_the_training_alone():
    optimizer = optax.chain(optax.sgd(0.5), average.keep_mean(is_averaging=False))
    params = {"a": jnp.array([1.0, -2.0]), "b": {"c": jnp.array(3.0)}}
    state = optimizer.init(params)
    by_hand, past = np.array([1.0, -2.0, 3.0]), []
    for step in range(1, 8):
        if step == 4:
            state = average.begin(state)
        gradients = {"a": jnp.array([0.1, step]), "b": {"c": jnp.array(-1.0)}}
        updates, state = optimizer.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        by_hand = by_hand - 0.5 * np.array([0.1, step, -1.0])
        past.append(by_hand)
        judged = average.params_to_evaluate(params, state)
        expected = by_hand if step < 4 else np.mean(past[3:], axis=0)
        np.testing.assert_allclose([*judged["a"], judged["b"]["c"]], expected, rtol=1e-6)
        if step < 4:
            jax.tree.map(np.testing.assert_array_equal, judged, params)
    np.testing.assert_allclose([*params["a"], params["b"]["c"]], by_hand, rtol=1e-6)


def test_validation_has_stopped_improving_when_it_is_worse_than_all_but_the_last():
    assert not average.stopped_improving([], 5.0, 1)
    assert not average.stopped_improving([3.0, 4.0], 9.0, 2)  # there are none but the last two
    assert average.stopped_improving([3.0, 4.0, 2.0], 3.5, 2)
    assert not average.stopped_improving([3.0, 2.0, 2.0], 2.5, 2)
    assert not average.stopped_improving([3.0, 4.0, 2.0], 3.0, 2)


def test_frozen_parts_are_judged_as_they_are_and_without_an_average_all_are():
    params = {"a": jnp.ones(2), "frozen": jnp.full(3, 7.0)}
    averaging = average.keep_average(0.9)
    _, state = averaging.update(
        {"a": jnp.ones(2)}, averaging.init({"a": jnp.ones(2)}), {"a": jnp.ones(2)}
    )
    judged = average.params_to_evaluate(params, (optax.EmptyState(), state))
    assert judged["frozen"] is params["frozen"] and judged["a"][0] > 1
    assert average.params_to_evaluate(params, (optax.EmptyState(),)) is params


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_average_is_validated_and_kept_as_the_best(tmp_path, devices):
    """What is evaluated later, from the best checkpoint, has the validation's own figure."""
    recipe = small.experiment(average=0.9, clip=0.5)
    trainer = small.trainer(recipe, tmp_path, devices)
    progress = trainer.train()
    _, state, _ = small.last_state(trainer)
    step, arrays, _ = small.last_state(trainer, "best")
    best, task = arrays["params"], trainer.task
    scores = perplexity.score(
        recipe.model, best, task.tables, task.validation, task.validation_rows
    )
    np.testing.assert_allclose(scores.log_perplexity, progress.best, rtol=1e-6)
    assert (
        step == progress.best_step == trainer.task.total_steps
    )  # the small model only gets better
    averaged = optax.tree_utils.tree_get(state[1], "averaged_params")
    jax.tree.map(np.testing.assert_array_equal, best, averaged)
    weights = best["head"]["weights"], state[0]["head"]["weights"]
    assert np.abs(weights[0] - weights[1]).max() > 1e-3

    plain = small.trainer(small.experiment(clip=0.5), tmp_path / "plain", devices)
    plain.train()
    jax.tree.map(np.testing.assert_array_equal, small.last_state(plain)[1][0], state[0])


@pytest.mark.slow
def test_averaging_begins_when_validation_stops_improving(tmp_path):
    """A rate that is too high for a random text: the validation soon gets worse."""
    log = []
    recipe = small.experiment(average_after=2, epochs=8, optimizer=SGD(4.0))
    trainer = small.trainer(recipe, tmp_path, log=log)
    progress = trainer.train()
    values = progress.validations
    assert len(values) == 8
    begins = next(n for n in range(8) if average.stopped_improving(values[:n], values[n], 2))
    positions = [n for n, line in enumerate(log) if "averaging the parameters from here on" in line]
    assert (
        len(positions) == 1
        and sum("validation log-perp" in s for s in log[: positions[0]]) == begins + 1
    )
    state = small.last_state(trainer)[1].optimizer_state
    steps = optax.tree_utils.tree_get(state, "averaged_steps")
    assert steps == trainer.task.epoch_steps * (7 - begins)
    # The same values up to there, without averaging; afterwards other, better ones.
    plain = small.trainer(
        small.experiment(epochs=8, optimizer=SGD(4.0)), tmp_path / "plain"
    ).train()
    assert plain.validations[: begins + 1] == values[: begins + 1]
    assert values[-1] < plain.validations[-1]
