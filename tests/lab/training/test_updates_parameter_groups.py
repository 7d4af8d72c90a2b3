"""Which parts are trained, and how fast, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.lab.training import small
from tests.marks import slow
from zoo.base.arrays.parameter_sharding import path_name
from zoo.lab.training import average
from zoo.optimizers import SGD, Adagrad, Adam
from zoo.row_updates import RowGradient, SparseGradients

RATES = (("head", 2.0), ("head/bias", 0.5), ("core/0", 3.0), ("embed", 9.0))


def test_the_longest_name_that_a_path_begins_with_has_the_factor():
    factors = {
        path: average.rate_factor(RATES, path)
        for path in ("head/weights", "head/bias", "head/biases", "head", "core/0/recurrent")
    }
    assert list(factors.values()) == [2, 0.5, 2, 2, 3]
    assert (
        average.rate_factor(RATES, "core/01") == average.rate_factor(RATES, "embedding/table") == 1
    )


def test_parts_are_split():
    params = {"a": {"x": 1}, "b": 2, "c": 3}
    assert average.split(params, ("c", "a")) == ({"b": 2}, {"c": 3, "a": {"x": 1}})
    assert average.split(params, ()) == (params, {})


def zeros_of(trainer):
    """Parameters of the shapes that a trainer's have."""
    shapes = jax.eval_shape(trainer.initial_state).params
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes)


def update_of(tmp_path, **training):
    """What the optimiser of a trainer adds to each parameter after a gradient of ones."""
    trainer = small.trainer(small.experiment(**training), tmp_path)
    params = zeros_of(trainer)
    state, gradients = trainer.optimizer.init(params), jax.tree.map(jnp.ones_like, params)
    updates, _ = trainer.optimizer.transformation.update(gradients, state, params)
    return updates


def constants(updates):
    """{path: the number that fills the array there}."""
    constant_by_path = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(updates):
        np.testing.assert_array_equal(leaf, leaf.ravel()[0])
        constant_by_path[path_name(path)] = float(leaf.ravel()[0])
    return constant_by_path


@pytest.mark.parametrize("optimizer", [SGD(0.5), SGD(0.5, momentum=0.9), Adam(0.5), Adagrad(0.5)])
@pytest.mark.slow
def test_updates_are_multiplied_after_clipping(tmp_path, optimizer):
    settings = {"optimizer": optimizer, "clip": 0.1}
    plain = constants(update_of(tmp_path, **settings))
    rates = (("head", 2.0), ("head/bias", 0.5), ("core", 3.0))
    scaled = constants(update_of(tmp_path, rates=rates, **settings))
    assert {name for name in plain if name.startswith("core/0/")} and "head/bias" in plain
    for name, value in plain.items():
        part = name.partition("/")[0]
        factor = 0.5 if name == "head/bias" else {"head": 2, "core": 3}.get(part, 1)
        assert scaled[name] == pytest.approx(factor * value, rel=1e-6), name
    # All gradients together have the norm 0.1, whatever the factors.
    if optimizer == SGD(0.5):
        count = 13 * 6 + (6 + 7 + 1) * 28 + 13 * 8
        assert plain["embedding/table"] == pytest.approx(-0.5 * 0.1 / count**0.5, rel=1e-5)


@pytest.mark.slow
def test_a_factor_of_one_changes_no_bit(tmp_path):
    plain = update_of(tmp_path, clip=0.1)
    by_one = update_of(tmp_path, clip=0.1, rates=(("head", 1.0), ("embedding/table", 1.0)))
    jax.tree.map(np.testing.assert_array_equal, plain, by_one)


@pytest.mark.parametrize("optimizer", [SGD(0.5), *slow(Adagrad(0.5), Adam(0.5))])
def test_rows_have_the_factor_of_their_table(tmp_path, optimizer):
    ends = []
    for rates in ((), (("embedding", 2.0), ("core/0", 3.0), ("head/bias", 4.0))):
        recipe = small.experiment(optimizer=optimizer, row_sparse=True, clip=0.1, rates=rates)
        recipe = small.with_settings(recipe, "model.head=NCE")
        trainer = small.trainer(recipe, tmp_path)
        rule, params = trainer.optimizer, zeros_of(trainer)
        dense = jax.tree.map(jnp.ones_like, {"core": params["core"]}) | {"embedding": {}}
        ids = jnp.asarray([2, 99])  # 99 is no row
        rows = {
            path: RowGradient(ids, jnp.stack([jnp.ones(shape), jnp.zeros(shape)]))
            for path, shape in (
                (("embedding", "table"), 6),
                (("head", "weights"), 7),
                (("head", "bias"), ()),
            )
        }
        dense["head"] = {}
        step = jnp.zeros((), jnp.int32)
        gradients = SparseGradients(dense, rows)
        params, _, _ = rule.update(params, rule.init(params), step, gradients)
        ends.append(params)
    plain, scaled = ends
    factors = {"embedding/table": 2, "head/weights": 1, "head/bias": 4}
    for path, value in jax.tree_util.tree_leaves_with_path(plain):
        factor = factors.get(path_name(path), 3)
        leaf = scaled
        for entry in path:
            leaf = leaf[getattr(entry, "key", getattr(entry, "idx", None))]
        assert jnp.abs(value).max() > 0
        np.testing.assert_allclose(leaf, factor * value, rtol=1e-6)
