"""Memory of the blocked softmax at a vocabulary of 800,000, and its time at one of 50,000.

Peak temporary memory of loss and gradients (of hidden, weights and bias), N = 1,024, D = 256, from
XLA's memory analysis of the compiled function, without arguments and results; nothing is run. It is
compared with the size of the [N, V] float32 logits. The times are measured at V = 50,000.

    python -m benchmarks.blocked_softmax_memory
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from zoo.losses import softmax

TOKENS, SIZE, VOCABULARY, TIMED_VOCABULARY = 1_024, 256, 800_000, 50_000


def plain(hidden, weights, bias, targets):
    """Computes the mean loss with all logits in memory."""
    return softmax.plain_softmax_loss(hidden, weights, bias, targets)[0].mean()


def vocabulary_blocks(hidden, weights, bias, targets):
    """Computes the mean loss in blocks of the vocabulary."""
    return softmax.softmax_loss(hidden, weights, bias, targets)[0].mean()


def weighted_sum(hidden, weights, bias, targets):
    """Computes the mean loss as a weighted sum, in blocks of tokens or of the vocabulary."""
    weight = jnp.full(targets.shape, 1 / targets.size)
    return softmax.weighted_softmax_loss(hidden, weights, bias, targets, weight)


SIDES = {
    "plain": plain,
    "blocks of the vocabulary": vocabulary_blocks,
    "weighted sum": weighted_sum,
}


def step(loss):
    """Jits loss and gradients."""
    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


def main():
    """Prints the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of timing; 0: memory only")
    rounds = parser.parse_args().rounds

    def shapes(vocabulary):
        sizes = ((TOKENS, SIZE), (vocabulary, SIZE), (vocabulary,))
        return (
            *(jax.ShapeDtypeStruct(size, jnp.float32) for size in sizes),
            jax.ShapeDtypeStruct((TOKENS,), jnp.int32),
        )

    logits = "the [N, V] logits"
    memory = {logits: 4.0 * TOKENS * VOCABULARY}
    for name, loss in SIDES.items():
        analysis = step(loss).lower(*shapes(VOCABULARY)).compile().memory_analysis()
        memory[name] = float(analysis.temp_size_in_bytes)
    title = f"temporary memory, N = {TOKENS:,}, V = {VOCABULARY:,}, D = {SIZE}"
    timing.print_table(title, memory, logits, "MB")

    if not rounds:
        return
    random = np.random.default_rng(0)
    hidden, weights, bias, _ = (
        jnp.asarray(random.normal(size=shape.shape) * 0.1, jnp.float32)
        for shape in shapes(TIMED_VOCABULARY)
    )
    targets = jnp.asarray(random.integers(TIMED_VOCABULARY, size=TOKENS), jnp.int32)
    sides = {}
    for name, loss in SIDES.items():
        compiled = step(loss).lower(hidden, weights, bias, targets).compile()
        sides[name] = lambda compiled=compiled: jax.block_until_ready(
            compiled(hidden, weights, bias, targets)
        )
    title = (
        f"time of a step, V = {TIMED_VOCABULARY:,}, forward and backward, medians of {rounds} "
        f"(divide by {TOKENS:,} for a token)"
    )
    timing.print_table(title, timing.medians(sides, rounds), "plain")


if __name__ == "__main__":
    main()
