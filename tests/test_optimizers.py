"""Learning rates and clipping, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo import optimizers
from zoo.errors import UserError
from zoo.optimizers import SGD, Adagrad, Adam, Constant, Cosine, Decay, Optax, RMSProp


def first_update(recipe, gradient, clip=0.0):
    """What is added to parameters of 0 after one gradient."""
    transformation = optimizers.build(recipe, clip, epoch_steps=5, total_steps=20)
    params = jnp.zeros(len(gradient))
    updates, _ = transformation.update(jnp.array(gradient), transformation.init(params), params)
    return np.asarray(updates)


def test_clipping_bounds_the_norm_and_leaves_shorter_gradients():
    np.testing.assert_allclose(first_update(SGD(2.0), [3.0, 4.0], clip=1.0), [-1.2, -1.6], 1e-6)
    np.testing.assert_allclose(first_update(SGD(2.0), [3.0, 4.0], clip=6.0), [-6, -8], 1e-6)
    np.testing.assert_allclose(first_update(SGD(2.0), [3.0, 4.0]), [-6, -8], 1e-6)


def test_first_updates_by_hand():
    # g / sqrt(0.1 g^2); g / sqrt(0.1 + g^2); the sign of g.
    np.testing.assert_allclose(
        first_update(RMSProp(0.01), [3.0, -4.0]), [-0.01 / 0.1**0.5, 0.01 / 0.1**0.5], 1e-4
    )
    np.testing.assert_allclose(
        first_update(Adagrad(0.2), [3.0, -4.0]), [-0.6 / 9.1**0.5, 0.8 / 16.1**0.5], 1e-4
    )
    np.testing.assert_allclose(first_update(Adam(0.01), [3.0, -4.0]), [-0.01, 0.01], 1e-4)


def test_the_decay_of_weights_is_added_to_gradients_after_clipping():
    transformation = optimizers.build(optimizers.SGD(0.5, weight_decay=0.1), 1.0, 10, 10)
    params, gradients = jnp.array([2.0, -1.0]), jnp.array([3.0, 4.0])
    updates, _ = transformation.update(gradients, transformation.init(params), params)
    np.testing.assert_allclose(updates, [-0.5 * (0.6 + 0.2), -0.5 * (0.8 - 0.1)], rtol=1e-6)


def test_schedules_by_hand():
    assert [float(Constant().build(0.5, 5, 20)(step)) for step in (0, 19)] == [0.5, 0.5]
    cosine = Cosine(warmup=4, final=0.1).build(1.0, 5, 20)
    rates = [float(cosine(step)) for step in (0, 2, 4, 12, 20)]
    np.testing.assert_allclose(rates, [0, 0.5, 1, 0.55, 0.1], atol=1e-6)
    decay = Decay(after=2, factor=2.0).build(1.0, 5, 20)
    # Epochs 0 and 1 at the full rate, then halved every epoch.
    rates = [float(decay(step)) for step in (0, 9, 10, 14, 15)]
    np.testing.assert_allclose(rates, [1, 1, 0.5, 0.5, 0.25])
    decay = Decay(after=2, factor=2.0, every=0.5).build(1.0, 6, 20)
    rates = [float(decay(jnp.array(step))) for step in (0, 11, 12, 14, 15, 18)]
    np.testing.assert_allclose(rates, [1, 1, 0.5, 0.5, 0.25, 0.125])


def test_a_decay_that_is_never_reached_leaves_the_rate():
    """Steps are int32, which cannot hold its time."""
    for decay in (Decay(after=1_000_000), Decay(after=0, every=1e6)):
        schedule = jax.jit(decay.build(0.5, epoch_steps=3000, total_steps=9000))
        rate = 0.5 if decay.after else 0.5 / 1.2  # after 0 epochs it is divided at once
        np.testing.assert_allclose([schedule(step) for step in (0, 8999)], rate, rtol=1e-6)


def test_a_warm_up_longer_than_the_training_is_refused():
    message = "warmup=20 steps leave.* of the 20 steps.*lower it, or raise total_steps"
    with pytest.raises(UserError, match=message):
        Cosine(warmup=20).build(1.0, 5, 20)


@pytest.mark.parametrize(
    ("resets", "steps_since_reset"),
    [
        ({}, range(1, 21)),
        # Resets before steps 6 and 12, not 18.
        ({"reset_every": 2, "resets": 2}, [1, 2, 3, 4, 5, 6] * 2 + [*range(1, 9)]),
    ],
)
def test_adagrad_forgets_its_history_at_resets_alone(resets, steps_since_reset):
    """Steps of gradient 1: the sum of squares is 0.1 + steps since the last reset."""
    optimizer = Adagrad(learning_rate=1.0, **resets).build(3, 100)
    params = {"x": jnp.zeros(2)}
    state, updates_of_x = optimizer.init(params), []
    for _ in range(20):
        updates, state = optimizer.update({"x": jnp.ones(2)}, state, params)
        updates_of_x.append(float(updates["x"][0]))
    np.testing.assert_allclose(
        updates_of_x, [-((0.1 + n) ** -0.5) for n in steps_since_reset], rtol=1e-5
    )


def test_optimisers_of_optax_by_name():
    # The sign of (1 - b1) g, with the decay of weights: -rate (sign(g) + 0.5 w).
    lion = Optax(0.2, "lion", ("b1=0.8", "weight_decay = 0.5", "mu_dtype=float32"), Decay(1, 2))
    transformation = lion.build(epoch_steps=1, total_steps=3)
    params, gradients = jnp.array([3.0, -1.0, 2.0]), jnp.array([7.0, -2.0, 0.5])
    state = transformation.init(params)
    for rate in (0.2, 0.1):
        updates, state = transformation.update(gradients, state, params)
        np.testing.assert_allclose(updates, [-2.5 * rate, 1.5 * rate, -2 * rate], rtol=1e-6)
    # Muon of optax.contrib gives a matrix singular values near 1, times the root of 3 / 2 here.
    muon = Optax(1.0, "muon", ("nesterov=False", "ns_steps=12")).build(1, 1)
    matrix = jnp.array([[3.0, 1.0, 0.5], [0.2, 0.1, 2.0]])
    update, _ = muon.update(matrix, muon.init(matrix), matrix)
    np.testing.assert_allclose(np.linalg.svd(update)[1], 1.5**0.5, atol=0.35)
    assert first_update(Optax(0.1), [3.0, -4.0]).shape == (2,)  # adafactor


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("adafacto", (), "optax.adafacto does not work .*the nearest are adafactor, "),
        ("schedule_free_adamw", (), "not an optimiser of a rate; the nearest are "),
        ("apply_updates", (), "not an optimiser of a rate"),
        ("lbfgs", (), "'value_fn'"),
        ("adamw", ("b=0.5",), r"settings=\('b=0.5',\) .*unexpected keyword argument 'b'"),
        ("adamw", ("b1",), "unsupported operand"),
        ("adamw", ("learning_rate=1",), "multiple values"),
    ],
)
def test_what_optax_refuses_is_told(name, settings, message):
    with pytest.raises(UserError, match=message):
        Optax(0.1, name, settings)
