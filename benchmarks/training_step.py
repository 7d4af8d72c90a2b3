"""A full training step against the same model in PyTorch.

Forward, backward, clipping of the gradient's norm and SGD for an LSTM language model: 2 layers of
256, embedding 256, V = 10,000, untied softmax with bias, B = 32, T = 35, no dropout, the carry
passed from step to step. Both start from the same parameters and see the same batch, once in a
process that keeps freed memory for the next step, once in a process that does not. Both compute in
float32 and in bfloat16: zoo with training.compute="bfloat16", PyTorch with torch.autocast. PyTorch
runs eagerly, and compiled but for its layers of LSTM, which `torch.compile` leaves as they are.

    pip install torch==2.13.0
    python -m benchmarks.training_step
    python -m benchmarks.training_step --size 650
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import pytorch, pytorch_steps, same_device, steps, timing
from benchmarks.pytorch import torch
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel

BATCH, LENGTH, LAYERS, VOCABULARY = 32, 35, 2, 10_000
AUTOCAST = {"PyTorch": False, "PyTorch, autocast": True}
COMPUTE = {"zoo": "float32", "zoo, bfloat16": "bfloat16"}


def main():
    """Prints the table."""
    arguments = timing.parser(__doc__, rounds=15, size=256).parse_args()
    device, size = same_device.share_device(torch), arguments.size
    lexicon = steps.zipf_lexicon(VOCABULARY)
    model = LanguageModel(Lookup(size), LSTM(size, LAYERS), Softmax())
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))
    batch = steps.uniform_batch(VOCABULARY, BATCH, LENGTH)
    sides = {}
    for name, autocast in AUTOCAST.items():
        build = pytorch_steps.torch_step(model, params, {}, batch, autocast)
        try:
            build(lambda function: function)()
        except RuntimeError as error:  # PyTorch has no LSTM in bfloat16 for cores without AVX-512
            print(f"{name} is left out, as it does not run on these cores: {error}")
            continue
        sides[name] = build(lambda function: function)
        sides[f"{name}, compiled"] = build(torch.compile)
    for name, compute in COMPUTE.items():
        training = pytorch_steps.training(compute)
        ours = jax.tree.map(jnp.asarray, params)  # a step donates them
        sides[name] = steps.step_of(model, ours, lexicon, batch, training)
    pytorch.print_steps(
        f"2 x LSTM-{size}, B = {BATCH}, T = {LENGTH}, V = {VOCABULARY:,}, {device}",
        sides,
        arguments.rounds,
        "PyTorch",
    )


if __name__ == "__main__":
    timing.in_each_memory(main)
