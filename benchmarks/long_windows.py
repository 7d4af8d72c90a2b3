"""Memory of a training step at growing windows, with all states kept or rematerialised.

Steps are compiled for a CPU and not run; the compiler reports the memory that a step needs besides
the state and the batch. With `model.core.rematerialise`, only the inputs of each layer are kept,
and the states in between are recomputed in the backward pass.

    python -m benchmarks.long_windows
"""

import dataclasses

import jax

from benchmarks import steps, timing
from zoo.cores import GRU, LSTM, Elman
from zoo.data import Micro
from zoo.embeddings import Lookup
from zoo.experiment import Experiment, Training
from zoo.heads import Softmax
from zoo.lab.training import step_shapes
from zoo.models import LanguageModel
from zoo.optimizers import SGD

BATCH, SIZE, VOCABULARY, WINDOWS, CHUNK = 8, 256, 2_000, (64, 512), 32
CORES = LSTM, GRU, Elman


def besides(core, window: int, compute: str = "float32") -> int:
    """Compiles a step and returns the bytes that it needs besides the state and the batch."""
    training = Training(batch=BATCH, length=window, optimizer=SGD(), compute=compute)
    model = LanguageModel(Lookup(SIZE), core, Softmax())
    recipe = Experiment(data=Micro(), model=model, training=training)
    step = step_shapes.from_language_model(recipe, steps.zipf_lexicon(VOCABULARY))
    compiled = jax.jit(step.function, donate_argnums=0).lower(*step.arguments).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def main():
    """Prints a table as Markdown."""
    timing.parser(__doc__).parse_args()
    print(f"V = {VOCABULARY:,}, B = {BATCH}, D = {SIZE}, two layers; MB besides the state\n")
    print("| core | window | all kept | chunks of 32 |\n|---|---|---|---|")
    for kind in CORES:
        core = kind(SIZE, layers=2, dropout=0.2)
        in_chunks = dataclasses.replace(core, rematerialise=CHUNK)
        for window in WINDOWS:
            sizes = [besides(variant, window) / 1e6 for variant in (core, in_chunks)]
            print(f"| {kind.__name__} | {window} | {sizes[0]:.1f} | {sizes[1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
