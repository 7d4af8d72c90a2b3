"""The adaptive softmax against the exact one at V = 100,000: a whole training step.

Forward, backward, clipping and SGD for one LSTM layer of 256 on words by Zipf's law, B = 32,
T = 35; cutoffs 2,000, 10,000 and 40,000, vectors four times smaller from tail to tail.

    python -m benchmarks.adaptive
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo import optimizers
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import AdaptiveSoftmax, Softmax
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel
from zoo.training import step
from zoo.training.devices import Devices

BATCH, LENGTH, SIZE, VOCABULARY, CLIP = 32, 35, 256, 100_000, 1.0
HEADS = {"exact": Softmax(), "adaptive": AdaptiveSoftmax(cutoffs=(2_000, 10_000, 40_000))}


def one_step(head, lexicon, columns):
    """A function that does one step and returns when it is done, as the training loop does."""
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
    params = model.init(jax.random.key(0), lexicon)
    optimizer = optimizers.build(optimizers.SGD(1.0), CLIP, 1, 1)
    devices = Devices(1, BATCH)
    compiled = devices.compile(step.train_step, model=model, optimizer=optimizer)
    carry = model.core.initial_carry(BATCH)
    state = step.TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    state, tables = devices.replicate(state), devices.replicate(model.tables(lexicon))
    key = jax.random.key_data(jax.random.key(1))

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
    lexicon = Lexicon(
        words=tuple(map(str, range(VOCABULARY))),
        counts=(1e9 / np.arange(1, VOCABULARY + 1)).astype(np.int64),
    )
    random = np.random.default_rng(0)
    logarithms = random.uniform(0, np.log(VOCABULARY), (BATCH, LENGTH + 1))
    words = np.exp(logarithms).astype(np.int32) - 1
    shape = (BATCH, LENGTH)
    columns = step.Columns(
        words[:, :-1].copy(),
        words[:, 1:].copy(),
        np.ones(shape, np.float32),
        np.zeros(shape, bool),
        np.arange(BATCH, dtype=np.int32),
    )
    sides = {name: one_step(head, lexicon, columns) for name, head in HEADS.items()}
    title = f"a training step, B = {BATCH}, T = {LENGTH}, D = {SIZE}, V = {VOCABULARY:,}"
    timing.print_table(title, timing.medians(sides, rounds), "exact")


if __name__ == "__main__":
    main()
