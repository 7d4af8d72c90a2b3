"""Memory of a training step on each device when the vocabulary is sharded over devices.

Steps are compiled for CPU devices and not run; the compiler reports for each device the size of the
state and the batch, and the memory that the step needs besides.

    python -m benchmarks.mesh_memory
"""

import functools

import jax
import jax.numpy as jnp

from benchmarks import steps, timing
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import NCE, AdaptiveSoftmax, Head, MixtureOfSoftmaxes, Softmax
from zoo.lab.training import average, step
from zoo.lab.training.devices import MeshDevices
from zoo.lab.training.tasks import words_loss
from zoo.lab.training.updates import Updates
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad, build

DEVICES, BATCH, LENGTH, SIZE, VOCABULARY = 4, 32, 20, 64, 40_000
HEADS: dict[str, Head] = {
    "softmax": Softmax(),
    "sampled": NCE(samples=256),
    "adaptive": AdaptiveSoftmax(cutoffs=(4_000, 16_000)),
    "mixture": MixtureOfSoftmaxes(components=3),
}


def memory(head: Head, shards: int) -> tuple[int, int]:
    """Returns (bytes of the state and the batch, bytes besides) of one device."""
    lexicon = steps.zipf_lexicon(VOCABULARY)
    model = LanguageModel(Lookup(SIZE), LSTM(SIZE), head)
    optimizer = Updates(build(Adagrad(0.1), 1.0, 1, 1))
    params = model.init(jax.random.key(0), lexicon)
    start = jnp.zeros((), jnp.int32)
    state = step.TrainState(params, optimizer.init(params), model.initial_carry(BATCH), start)
    axes = average.collect_axes(model, ("embedding", "head"))
    devices = MeshDevices(DEVICES, BATCH, shards, state, axes, [VOCABULARY])
    compiled = devices.compile(
        step.train_step,
        loss=functools.partial(words_loss, model),
        optimizer=optimizer,
    )
    lowered = compiled.lower(
        devices.copy_state(jax.device_put(state, devices.layouts(state))),
        devices.place_tables(model.tables(lexicon)),
        devices.split(steps.zipf_batch(VOCABULARY, BATCH, LENGTH)),
        devices.place(jax.random.key_data(jax.random.key(1))),
    )
    analysis = lowered.compile().memory_analysis()
    return analysis.argument_size_in_bytes, analysis.temp_size_in_bytes


def main():
    """Prints a table."""
    timing.parser(__doc__).parse_args()
    jax.config.update("jax_num_cpu_devices", DEVICES)
    print(f"V = {VOCABULARY:,}, B = {BATCH}, T = {LENGTH}, D = {SIZE}; MB on each of {DEVICES}")
    print(f"{'head':10} {'data x model':>12} {'state, batch':>12} {'besides':>8}")
    for name, head in HEADS.items():
        for shards in (1, 2, 4):
            state, besides = (size / 1e6 for size in memory(head, shards))
            print(f"{name:10} {f'{DEVICES // shards} x {shards}':>12} {state:12.1f} {besides:8.1f}")


if __name__ == "__main__":
    main()
