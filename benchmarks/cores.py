"""The recurrent cores: hand-written backward passes against PyTorch's layers.

Forward and backward of layers on given inputs, with the gradients of parameters and inputs: B = 32,
T = 35, D = 256, two layers; once with freed memory kept, once without. PyTorch
(`pip install torch==2.13.0`) is compared if installed; its layers have two biases a gate, zoo's
have one, and its GRU is the same function as zoo's. The last side multiplies no few rows as columns
(`zoo.base.arrays.products`).

    python -m benchmarks.cores [--size 512 --batch 64]
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn

from benchmarks import same_device, timing
from zoo.base.arrays import products
from zoo.cores import GRU, LSTM, Elman

try:
    import torch
except ImportError:
    torch = None

LENGTH, LAYERS = 35, 2
CORES = {"LSTM": LSTM, "GRU": GRU, "Elman": Elman}


@dataclasses.dataclass(frozen=True)
class CuDNN(LSTM):
    """Layers of LSTM by `jax.experimental.rnn`, which calls cuDNN on a GPU."""

    def _apply(self, params, inputs, carry, reset, key):
        layers = [(w["input"].T, w["recurrent"].T) for w in params]
        biases = [(w["bias"], jnp.zeros_like(w["bias"])) for w in params]
        flat = jnp.concatenate([jnp.ravel(part) for pair in layers + biases for part in pair])
        hidden, cell = (jnp.stack(parts) for parts in zip(*carry, strict=True))
        lengths = jnp.full(len(inputs), inputs.shape[1], jnp.int32)
        sizes = inputs.shape[2], self.size, self.layers, 0.0, False
        outputs, hidden, cell = rnn.lstm(inputs, hidden, cell, flat, lengths, *sizes)
        return outputs, tuple(zip(hidden, cell, strict=True))


def zoo_side(core, inputs, cotangent):
    """Returns a function that does one step."""
    params, carry = core.init(jax.random.key(0), inputs.shape[-1]), core.initial_carry(len(inputs))

    def objective(params, inputs, carry):
        hidden, carry = core.apply(params, inputs, carry)
        return jnp.sum(hidden * cotangent), carry

    step = jax.grad(objective, argnums=(0, 1), has_aux=True)
    return timing.compiled_side(step, params, inputs, carry)


def torch_side(name, layers, inputs, cotangent):
    """Returns the same for PyTorch's layers."""
    kind = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "Elman": torch.nn.RNN}[name]
    size = inputs.shape[-1]
    layers = kind(size, size, layers, batch_first=True)
    device = torch.get_default_device()
    inputs = torch.from_numpy(np.array(inputs)).to(device).requires_grad_()
    cotangent = torch.from_numpy(np.array(cotangent)).to(device)

    def step():
        layers.zero_grad(set_to_none=True)
        inputs.grad = None
        hidden, _ = layers(inputs)
        hidden.backward(cotangent)
        if device.type != "cpu":
            torch.cuda.synchronize()

    return step


def sides(size, batch, name="LSTM", length=LENGTH, layers=1, unroll=()):
    """Returns the sides of one of `CORES`; `unroll`: positions of a scan computed as one."""
    shape = 2, batch, length, size
    arrays = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    core = CORES[name](size, layers)
    core_sides = {"by hand": zoo_side(core, *arrays)}
    for positions in unroll:
        scan = functools.partial(jax.lax.scan, unroll=positions)
        unrolled = timing.traced_with(zoo_side(core, *arrays), jax.lax, scan=scan)
        core_sides[f"by hand, unroll {positions}"] = unrolled
    if torch is not None:
        core_sides["PyTorch"] = torch_side(name, layers, *arrays)
    if name == "LSTM" and jax.default_backend() == "gpu":
        core_sides["jax.experimental.rnn"] = zoo_side(CuDNN(size, layers), *arrays)
    return core_sides


def main():
    """Prints a table a core."""
    arguments = timing.parser(__doc__, rounds=15, batch=32, size=256).parse_args()
    size, batch = arguments.size, arguments.batch
    device = same_device.share_device(torch)
    for name in CORES:
        title = f"{LAYERS} x {name}-{size}, B = {batch}, T = {LENGTH}, {device}"
        core_sides = sides(size, batch, name, layers=LAYERS)
        own_side = sides(size, batch, name, layers=LAYERS)["by hand"]
        all_rows = timing.traced_with(own_side, products, MOST_ROWS=0)
        core_sides["by hand, no columns"] = all_rows
        timing.compare(title, core_sides, arguments.rounds, "by hand")


if __name__ == "__main__":
    timing.in_each_memory(main)
