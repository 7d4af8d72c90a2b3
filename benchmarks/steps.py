"""Whole training steps of the training loop, on words drawn by Zipf's law or uniformly."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np

import configs
from benchmarks import timing
from zoo.cores import GRU, LSTM
from zoo.embeddings import CharCNN, Lookup
from zoo.experiment import Training
from zoo.heads import CharLSTM, Softmax
from zoo.lab.training import product_counts, step
from zoo.lab.training.devices import Devices
from zoo.lab.training.step import Batch
from zoo.lab.training.tasks import Words, words_loss
from zoo.lab.training.updates import choose_updates
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel

# Sizes of the models whose words are read or spelled letter by letter.
SIZE = 256
SMALL_CHAR_CNN = configs.load("ptb_cnn_softmax").model.head.network  # of Kim et al. (2016)
MODELS = {
    "gru": LanguageModel(Lookup(SIZE), GRU(SIZE, layers=2), Softmax()),
    "char_cnn": LanguageModel(CharCNN(SIZE, SMALL_CHAR_CNN), LSTM(SIZE, layers=2), Softmax()),
    "char_lstm": LanguageModel(Lookup(SIZE), LSTM(SIZE), CharLSTM()),
}


def zipf_lexicon(vocabulary: int) -> Lexicon:
    """Makes a lexicon with counts proportional to 1 / rank."""
    counts = (1e9 / np.arange(1, vocabulary + 1)).astype(np.int64)
    return Lexicon(words=tuple(map(str, range(vocabulary))), counts=counts)


def zipf_batch(vocabulary: int, batch: int, length: int) -> Batch:
    """Draws a full batch of words by Zipf's law."""
    logarithms = np.random.default_rng(0).uniform(0, np.log(vocabulary), (batch, length + 1))
    return batch_of(np.exp(logarithms).astype(np.int32) - 1)


def uniform_batch(vocabulary: int, batch: int, length: int) -> Batch:
    """Draws a full batch of words, all equally likely."""
    words = np.random.default_rng(0).integers(vocabulary, size=(batch, length + 1))
    return batch_of(words.astype(np.int32))


def batch_of(words) -> Batch:
    """Makes a full batch of texts [B, T + 1]: of words, each with the next one as its target."""
    shape = words.shape[0], words.shape[1] - 1
    inputs = Words(words[:, :-1].copy(), words[:, 1:].copy(), np.zeros(shape, bool))
    return Batch(inputs, np.ones(shape, np.float32), np.arange(shape[0], dtype=np.int32))


def random_model(size: int, layers: int, vocabulary: int, scale: float):
    """Returns an LSTM with a softmax, its random parameters, and its tables.

    Args:
      size: of vectors and states.
      layers: of the LSTM.
      vocabulary: number of words.
      scale: initial scale of the head: the larger, the more peaked are its distributions.
    """
    embedding, head = Lookup(size, initial_scale=1.0), Softmax(initial_scale=scale)
    model, lexicon = LanguageModel(embedding, LSTM(size, layers), head), zipf_lexicon(vocabulary)
    return model, model.init(jax.random.key(0), lexicon), model.tables(lexicon)


def head_step(head, lexicon: Lexicon, hidden, targets):
    """Compiles loss and gradients of a head's parameters and of hidden states [N, D].

    Returns a function of no arguments; its result is (loss, gradients).
    """
    params, tables = head.init(jax.random.key(0), hidden.shape[-1], lexicon), head.tables(lexicon)
    step = jax.value_and_grad(head.weighted_loss, argnums=(0, 2))
    weights = jnp.full(targets.shape, 1 / targets.size)
    return timing.compiled_side(step, params, tables, hidden, targets, weights)


def random_tokens(size: int, tokens: int, lexicon: Lexicon):
    """Draws (hidden states [tokens, size], targets by the lexicon's background)."""
    random, probabilities = np.random.default_rng(0), np.exp(lexicon.log_background)
    hidden = jnp.asarray(random.normal(size=(tokens, size)) * 0.3, jnp.float32)
    return hidden, jnp.asarray(random.choice(len(lexicon), tokens, p=probabilities))


def zipf_step(model, lexicon: Lexicon, training: Training):
    """Returns a function that does a step on words by Zipf's law; see `step_of`."""
    data = zipf_batch(len(lexicon), training.batch, training.length)
    return step_of(model, lexicon, data, training)


def step_of(model, lexicon, data, training: Training):
    """Returns a function that does a step of a language model on a batch; see `steps_on`."""
    params = model.init(jax.random.key(0), lexicon)
    optimizer = choose_updates(training, params, model.row_tables(params), 1, 1)
    arrays = params, model.tables(lexicon), model.initial_carry(len(data.weights))
    loss = functools.partial(words_loss, model)
    return steps_on([data], loss, optimizer, *arrays, training.compute)


def steps_on(batches, loss, optimizer, params, tables, carry=(), compute="float32"):
    """Returns a function that does a step on each batch and returns their losses per token.

    A step is compiled for each shape, and for each precision of products that it is called with.
    It has `memory()` and `products()`, as `timing.compiled_side`.

    Args:
      batches: the batches, of which the function may be called with others.
      loss: see `zoo.lab.training.step`.
      optimizer: the updates.
      params: its parameters, which are donated: they cannot be used afterwards.
      tables: its tables.
      carry: its carry.
      compute: the type of products.
    """
    devices = Devices(1, len(batches[0].weights))
    compiled = devices.compile(step.train_step, loss=loss, optimizer=optimizer, compute=compute)
    state = step.TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    state, tables = devices.copy_state(state), devices.place(tables)
    key, programs = jax.random.key_data(jax.random.key(1)), {}
    shapes = jax.tree.map(jax.typeof, state)

    def program(batch):
        form = (jax.config.jax_default_matmul_precision, *map(np.shape, jax.tree.leaves(batch)))
        if form not in programs:
            programs[form] = compiled.lower(shapes, tables, batch, key).compile()
        return programs[form]

    def run(batches=batches):
        nonlocal state
        losses = []
        for batch in batches:
            state, results = program(batch)(state, tables, batch, key)
            losses.append(float(results.loss / results.tokens))
        jax.block_until_ready(state)
        return losses

    count = functools.partial(product_counts.count_products, compiled, shapes, tables)
    run.products = lambda: sum((count(batch, key) for batch in batches), collections.Counter())
    run.memory = lambda: timing.extra_memory(program(batches[0]))
    return run
