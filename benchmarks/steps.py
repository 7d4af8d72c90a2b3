"""Whole training steps of the training loop, on words drawn by Zipf's law or uniformly."""

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
from zoo.lab.training import step
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


def one_step(model, recipe, clip, vocabulary, batch, length, row_sparse=None):
    """Returns a function that does one step and returns its loss per token when done.

    Args:
      model: the language model.
      recipe: the optimiser.
      clip: largest norm of the gradient.
      vocabulary: number of words.
      batch: number of batch rows.
      length: tokens a batch row.
      row_sparse: whether tables are updated by rows; see Training.
    """
    lexicon = zipf_lexicon(vocabulary)
    params = model.init(jax.random.key(0), lexicon)
    data = zipf_batch(vocabulary, batch, length)
    training = Training(optimizer=recipe, clip=clip, row_sparse=row_sparse)
    return step_of(model, params, lexicon, data, training)


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


def recipe_step(recipe, lexicon: Lexicon):
    """Returns a function that does a step of a recipe, on words by Zipf's law; see `step_of`."""
    params, training = recipe.model.init(jax.random.key(0), lexicon), recipe.training
    data = zipf_batch(len(lexicon), training.batch, training.length)
    return step_of(recipe.model, params, lexicon, data, training)


def step_of(model, params, lexicon, data, training: Training):
    """Returns a function that does one step and returns its loss per token when done.

    A step is compiled for each precision of products that it is called with. Its `memory()` is
    `timing.extra_memory`.

    Args:
      model: the language model.
      params: its parameters, which are donated: they cannot be used afterwards.
      lexicon: its words.
      data: the batch.
      training: the optimiser, the clipping, the type of products, averages and whether tables are
        updated by rows.
    """
    batch, _ = data.weights.shape
    optimizer = choose_updates(training, params, model.row_tables(params), 1, 1)
    devices = Devices(1, batch)
    compiled = devices.compile(
        step.train_step,
        loss=functools.partial(words_loss, model),
        optimizer=optimizer,
        compute=training.compute,
    )
    carry = model.initial_carry(batch)
    state = step.TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    state, tables = devices.copy_state(state), devices.place(model.tables(lexicon))
    key = jax.random.key_data(jax.random.key(1))

    @functools.cache
    def program(precision):
        return compiled.lower(state, tables, data, key).compile()

    def run():
        nonlocal state
        step = program(jax.config.jax_default_matmul_precision)
        state, results = step(state, tables, data, key)
        jax.block_until_ready(state)
        return float(results.loss / results.tokens)

    run.memory = lambda: timing.extra_memory(program(jax.config.jax_default_matmul_precision))
    return run
