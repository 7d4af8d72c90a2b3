"""Items of recurrent layers: the training step of a language model, and the recurrence alone."""

import contextlib
import dataclasses
import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn

from benchmarks import cores, steps
from benchmarks.on_gpu.rows import COMPILED, Rows
from zoo import Training
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD

LEARNING_RATE, CLIP, LENGTH, VOCABULARY = 1.0, 5.0, 35, 10_000


@dataclasses.dataclass(frozen=True)
class CuDNN(LSTM):
    """Layers of LSTM by `jax.experimental.rnn`: cuDNN's on a GPU, its reference elsewhere."""

    def _apply(self, params, inputs, carry, reset, key):
        layers = [(w["input"].T, w["recurrent"].T) for w in params]
        biases = [(w["bias"], jnp.zeros_like(w["bias"])) for w in params]
        flat = jnp.concatenate([jnp.ravel(part) for pair in layers + biases for part in pair])
        hidden, cell = (jnp.stack(parts) for parts in zip(*carry, strict=True))
        lengths = jnp.full(len(inputs), inputs.shape[1], jnp.int32)
        sizes = inputs.shape[2], self.size, self.layers
        if jax.default_backend() == "gpu":
            arrays = inputs, hidden, cell, flat, lengths
            outputs, hidden, cell = rnn.lstm(*arrays, *sizes, 0.0, False)
        else:
            weights = rnn.unpack_lstm_weights(flat, *sizes, False)
            outputs, hidden, cell = rnn.lstm_ref(
                inputs, hidden, cell, *weights, lengths, *sizes, 0.0, False
            )
        return outputs, tuple(zip(hidden, cell, strict=True))


@contextlib.contextmanager
def unrolled(positions: int):
    """Unrolls the scans that are traced inside."""
    jax.clear_caches()  # a traced scan would be taken again
    with mock.patch.object(jax.lax, "scan", functools.partial(jax.lax.scan, unroll=positions)):
        yield


def training_step(rows: Rows):
    """Measures forward, backward, clipping and SGD of an LSTM language model."""
    sizes = ((2, 8),) if rows.small else ((2, 256), (3, 1150), (2, 650))
    vocabulary, length = (50, 5) if rows.small else (VOCABULARY, LENGTH)
    for batch in (3,) if rows.small else (32, 128):
        for layers, size in sizes:
            for precision in ("tf32", "bfloat16"):
                _step_of(rows, layers, size, batch, length, vocabulary, precision)


def _step_of(rows, layers, size, batch, length, vocabulary, precision):
    lexicon = steps.zipf_lexicon(vocabulary)
    data = steps.zipf_batch(vocabulary, batch, length)
    model = LanguageModel(Lookup(size), LSTM(size, layers), Softmax())
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))
    narrow = precision == "bfloat16"

    def zoo(core):
        ours = jax.tree.map(jnp.asarray, params)  # a step donates them
        compute = "bfloat16" if narrow else "float32"
        training = Training(optimizer=SGD(LEARNING_RATE), clip=CLIP, compute=compute)
        return steps.step_of(dataclasses.replace(model, core=core), ours, lexicon, data, training)

    def opponent(module, through):
        words, targets = data.inputs.words, data.inputs.targets
        return module.torch_step(model, params, {}, words, targets, autocast=narrow)(through)

    sides = {
        **rows.eager_and_compiled("pytorch_steps", opponent),
        "zoo": lambda: zoo(model.core),
    }
    if not narrow:  # jax.experimental.rnn has float32 only
        sides["zoo, jax.experimental.rnn"] = lambda: zoo(CuDNN(size, layers))
    if batch > 32:  # it compiles the head alone, and takes long to
        del sides[COMPILED]
    name = f"{layers} x LSTM-{size}, B = {batch}, T = {length}, V = {vocabulary:,}"
    rows.case(name, sides, precision)


def recurrence(rows: Rows):
    """Measures a layer on given inputs, forward and backward, at several unrollings."""
    batch = 2 if rows.small else 32
    for length in (5,) if rows.small else (35, 70):
        for size in (4,) if rows.small else (256, 2048, 1024, 512):
            _recurrence_of(rows, batch, length, size)


def _recurrence_of(rows, batch, length, size):
    random = np.random.default_rng(0)
    arrays = jnp.asarray(random.normal(size=(2, batch, length, size)), jnp.float32)

    def zoo(positions):
        with unrolled(positions):
            return cores.zoo_side(LSTM(size), *arrays)

    sides = {
        "PyTorch, cuDNN": lambda: rows.opponent("cores").torch_side("LSTM", 1, *arrays),
        "zoo, unroll 1": lambda: zoo(1),
        "jax.experimental.rnn": lambda: cores.zoo_side(CuDNN(size), *arrays),
        "zoo, unroll 5": lambda: zoo(5),
        "zoo, unroll 35": lambda: zoo(35),
    }
    rows.case(f"LSTM-{size}, B = {batch}, T = {length}", sides, kernels=True)
