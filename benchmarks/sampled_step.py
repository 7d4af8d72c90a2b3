"""A training step with 1,024 noise words, at vocabularies from ten thousand to a million.

Forward, backward, clipping and Adagrad for an LSTM language model: one layer of 256, embedding
256, B = 32, T = 32, importance sampling with 1,024 shared noise words, tables updated in the rows
that a step touches. Against it, at V = 10,000 and 100,000, the exact softmax with the dense
optimiser.

    python -m benchmarks.sampled_step
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo import optimizers
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.training import row_sparse, step
from zoo.training.devices import Devices

BATCH, LENGTH, SIZE, SAMPLES, CLIP = 32, 32, 256, 1_024, 1.0
SAMPLED, EXACT = (10_000, 100_000, 1_000_000), (10_000, 100_000)
ADAGRAD = optimizers.Adagrad(0.1)


def one_step(head, vocabulary, sparse):
    """A function that does one step and returns when it is done, as the training loop does."""
    lexicon = Lexicon(
        words=tuple(map(str, range(vocabulary))),
        counts=(1e9 / np.arange(1, vocabulary + 1)).astype(np.int64),
    )
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
    params = model.init(jax.random.key(0), lexicon)
    if sparse:
        paths = model.row_tables(params)
        optimizer = row_sparse.RowSparseOptimizer(ADAGRAD, CLIP, paths, 1, 1)
        train_step = row_sparse.train_step
    else:
        optimizer, train_step = optimizers.build(ADAGRAD, CLIP, 1, 1), step.train_step
    devices = Devices(1, BATCH)
    compiled = devices.compile(train_step, model=model, optimizer=optimizer)
    carry = model.core.initial_carry(BATCH)
    state = step.TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    state, tables = devices.replicate(state), devices.replicate(model.tables(lexicon))
    key = jax.random.key_data(jax.random.key(1))
    # Words by Zipf's law, as text has them.
    random = np.random.default_rng(0)
    zipf = np.exp(random.uniform(0, np.log(vocabulary), (BATCH, LENGTH + 1))).astype(np.int32) - 1
    shape = (BATCH, LENGTH)
    columns = step.Columns(
        zipf[:, :-1].copy(),
        zipf[:, 1:].copy(),
        np.ones(shape, np.float32),
        np.zeros(shape, bool),
        np.arange(BATCH, dtype=np.int32),
    )

    def run():
        nonlocal state
        state, results = compiled(state, tables, columns, key)
        jax.block_until_ready(state)
        return float(results.loss)

    return run


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    sampled = ImportanceSampling(samples=SAMPLES)
    sides = {f"sampled, V = {v:,}": one_step(sampled, v, sparse=True) for v in SAMPLED}
    sides |= {f"exact, V = {v:,}": one_step(Softmax(), v, sparse=False) for v in EXACT}
    title = f"a training step, B = {BATCH}, T = {LENGTH}, D = {SIZE}, K = {SAMPLES:,}"
    timing.print_table(title, timing.medians(sides, rounds), f"sampled, V = {SAMPLED[0]:,}")


if __name__ == "__main__":
    main()
