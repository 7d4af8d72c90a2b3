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

import dataclasses

import jax
import numpy as np

from benchmarks import cores, pytorch, pytorch_steps, same_device, steps, timing
from benchmarks.pytorch import torch
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel

BATCH, LENGTH, LAYERS, VOCABULARY = 32, 35, 2, 10_000
NAMES = {"float32": ("PyTorch", "zoo"), "bfloat16": ("PyTorch, autocast", "zoo, bfloat16")}


def sides(lstm, compute, batch=BATCH, vocabulary=VOCABULARY):
    """Returns sides with (layers, cells), and with products in float32 or bfloat16."""
    layers, size = lstm
    lexicon = steps.zipf_lexicon(vocabulary)
    model = LanguageModel(Lookup(size), LSTM(size, layers), Softmax())
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))
    data = steps.uniform_batch(vocabulary, batch, LENGTH)
    narrow = compute == "bfloat16"
    build = pytorch_steps.torch_step(model, params, {}, data, narrow)

    def zoo(core):
        training, with_core = pytorch_steps.training(compute), dataclasses.replace(model, core=core)
        return steps.step_of(with_core, lexicon, data, training)

    opponent, ours = NAMES[compute]
    step_sides = {opponent: build(lambda function: function)}
    if batch <= BATCH:  # it compiles the head alone, and takes long to
        step_sides[f"{opponent}, compiled"] = build(torch.compile)
    step_sides[ours] = zoo(model.core)
    if jax.default_backend() == "gpu" and not narrow:  # it has float32 only
        step_sides["jax.experimental.rnn"] = zoo(cores.CuDNN(size, layers))
    return step_sides


def main():
    """Prints the table."""
    arguments = timing.parser(__doc__, rounds=15, size=256).parse_args()
    device, size = same_device.share_device(torch), arguments.size
    all_sides = {}
    for compute, (opponent, ours) in NAMES.items():
        step_sides = sides((LAYERS, size), compute)
        try:
            sides((LAYERS, size), compute)[opponent]()
        except RuntimeError as error:  # PyTorch has no LSTM in bfloat16 for cores without AVX-512
            print(f"{opponent} is left out, as it does not run on these cores: {error}")
            step_sides = {ours: step_sides[ours]}
        all_sides |= step_sides
    pytorch.compare(
        f"2 x LSTM-{size}, B = {BATCH}, T = {LENGTH}, V = {VOCABULARY:,}, {device}",
        all_sides,
        arguments.rounds,
        "PyTorch",
    )


if __name__ == "__main__":
    timing.in_each_memory(main)
