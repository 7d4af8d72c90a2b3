"""Whole language models whose batch rows lie along an explicit axis of `jax.make_mesh`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests import examples, layouts
from tests.marks import slow
from zoo.cores import GRU, LSTM
from zoo.embeddings import CharCNN, Concat, Features, Lookup
from zoo.heads import NCE, AdaptiveSoftmax, CNNSoftmax, LogLinear, MixtureOfSoftmaxes, Softmax
from zoo.models import LanguageModel

MODELS = {
    "softmax": LanguageModel(Lookup(6), LSTM(6), Softmax()),
    "masks": LanguageModel(
        Lookup(6),
        LSTM(
            9,
            layers=2,
            last_size=6,
            dropout=0.3,
            input_dropout=0.3,
            recurrent_dropout=0.3,
            variational=True,
        ),
        MixtureOfSoftmaxes(components=2, size=6, tied=True, latent_dropout=0.3),
        word_dropout=0.3,
        output_dropout=0.3,
        activation_penalty=2.0,
        temporal_penalty=1.0,
    ),
    "log-linear": LanguageModel(Features(6), GRU(6), LogLinear()),
    "NCE": LanguageModel(Lookup(6), LSTM(6), NCE(samples=5)),
    "adaptive": LanguageModel(Lookup(6), LSTM(6), AdaptiveSoftmax((3, 8), division=2)),
    "letters": LanguageModel(Concat((Lookup(3), CharCNN(4))), LSTM(6), CNNSoftmax()),
}


@pytest.mark.parametrize(
    "name", ["log-linear", *slow("softmax", "masks", "NCE", "adaptive", "letters")]
)
def test_losses_and_gradients_are_those_of_one_device(name, random):
    model, lexicon, key = MODELS[name], examples.lexicon(), jax.random.key(0)
    params = examples.random_params(model, random, lexicon)
    words, targets = (jnp.asarray(random.integers(13, size=(8, 5))) for _ in range(2))
    rows = words, targets, jnp.asarray(random.uniform(size=(8, 5))), model.initial_carry(8)
    reset = jnp.asarray(random.random((8, 5)) < 0.3)

    @jax.jit
    @jax.value_and_grad
    def loss(params, rows, reset):
        tables = model.tables(lexicon)
        return model.weighted_loss(params, tables, *rows, reset=reset, key=key)[0]

    expected = loss(params, rows, reset)
    mesh = jax.make_mesh((4,), ("rows",))
    with jax.set_mesh(mesh):
        sharded, everywhere = NamedSharding(mesh, P("rows")), NamedSharding(mesh, P())
        placed = jax.device_put(params, everywhere), *jax.device_put((rows, reset), sharded)
        program = layouts.run(loss, *placed)
    for leaf, expected_leaf in zip(*map(jax.tree.leaves, (program.results, expected)), strict=True):
        np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-4, atol=1e-5)
    # The gradients of all devices are summed, and letters looked up for the words of all.
    ids = 4 * words.size if name == "letters" else 0
    assert program.largest("all-gather", "all-to-all", "collective-permute") <= ids
    assert ids or [c.times for c in program.collectives] == [1]
