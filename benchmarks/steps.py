"""Whole training steps on words by Zipf's law, as the training loop does them."""

import jax
import jax.numpy as jnp
import numpy as np

from zoo import optimizers
from zoo.lexicon import Lexicon
from zoo.training import placement, row_sparse, step
from zoo.training.devices import Devices


def zipf_lexicon(vocabulary: int) -> Lexicon:
    """Words whose counts fall as their rank grows."""
    counts = (1e9 / np.arange(1, vocabulary + 1)).astype(np.int64)
    return Lexicon(words=tuple(map(str, range(vocabulary))), counts=counts)


def zipf_columns(vocabulary: int, batch: int, length: int) -> step.Columns:
    """A full batch of words by Zipf's law."""
    shape = (batch, length)
    logarithms = np.random.default_rng(0).uniform(0, np.log(vocabulary), (batch, length + 1))
    words = np.exp(logarithms).astype(np.int32) - 1
    return step.Columns(
        words[:, :-1].copy(),
        words[:, 1:].copy(),
        np.ones(shape, np.float32),
        np.zeros(shape, bool),
        np.arange(batch, dtype=np.int32),
    )


def one_step(model, recipe, clip, vocabulary, batch, length, sparse=False):
    """A function that does one step and returns when it is done.

    Args:
      recipe: the optimiser's. sparse: tables are updated in the rows that a step touches.
    """
    lexicon = zipf_lexicon(vocabulary)
    params = model.init(jax.random.key(0), lexicon)
    if sparse:
        paths = model.row_tables(params)
        optimizer = row_sparse.RowSparseOptimizer(recipe, clip, paths, 1, 1)
        train_step = row_sparse.train_step
    else:
        optimizer, train_step = optimizers.build(recipe, clip, 1, 1), step.train_step
    devices = Devices(1, batch)
    compiled = devices.compile(train_step, model=model, optimizer=optimizer)
    carry = model.initial_carry(batch)
    state = step.TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    state, tables = placement.placed([state], devices), devices.replicate(model.tables(lexicon))
    key = jax.random.key_data(jax.random.key(1))
    columns = zipf_columns(vocabulary, batch, length)

    def run():
        nonlocal state
        state, results = compiled(state, tables, columns, key)
        jax.block_until_ready(state)
        return float(results.loss)

    return run
