"""The LSTM's hand-written backward pass against autodiff of the plain scan.

`lstm` against `plain_scans.lstm`, forward and backward with the gradients of all differentiable
arguments: B = 32, T = 35, D = 256; once with freed memory kept, once without.

    python -m benchmarks.lstm
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import plain_scans, timing
from zoo.layers.lstm import lstm

BATCH, LENGTH, SIZE = 32, 35, 256


def main():
    """Prints the table."""
    rounds = timing.parser(__doc__, rounds=21).parse_args().rounds

    random = np.random.default_rng(0)

    def array(*shape):
        return jnp.asarray(random.normal(size=shape) * SIZE**-0.5, jnp.float32)

    arguments = (
        array(LENGTH, BATCH, 4 * SIZE),
        array(SIZE, 4 * SIZE),
        array(BATCH, SIZE),
        array(BATCH, SIZE),
        jnp.ones((LENGTH, BATCH, 1)),
    )
    hiddens_cotangent, last_cotangent = array(LENGTH, BATCH, SIZE), array(BATCH, SIZE)

    sides, gradients = {}, {}
    for name, function in (("custom VJP", lstm), ("autodiff", plain_scans.lstm)):

        def objective(*arguments, function=function):
            hiddens, (hidden, cell) = function(*arguments)
            return jnp.sum(hiddens * hiddens_cotangent) + jnp.sum((hidden + cell) * last_cotangent)

        step = jax.value_and_grad(objective, argnums=(0, 1, 2, 3))
        sides[name] = timing.compiled_side(step, *arguments)
        gradients[name] = sides[name]()[1]

    timing.print_table(
        f"one layer, B = {BATCH}, T = {LENGTH}, D = {SIZE}; forward and backward, medians of "
        f"{rounds}",
        timing.medians(sides, rounds),
        "custom VJP",
    )
    timing.print_difference(*gradients.values())


if __name__ == "__main__":
    timing.in_each_memory(main)
