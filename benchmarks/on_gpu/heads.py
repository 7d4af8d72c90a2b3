"""Items of heads: the exact softmax, clustered and sampled losses, letters, log-linear."""

import contextlib
import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import char_cnn, log_linear, softmax_losses, steps, timing
from benchmarks.on_gpu.rows import COMPILED, Absent, Rows
from zoo import Training
from zoo.base.arrays import row_blocks
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.heads import NCE, AdaptiveSoftmax, CNNSoftmax, ImportanceSampling, Softmax
from zoo.losses import softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD, Adagrad

HEAD_SIZE = 512
BLOCKS = (1, 8, 64)  # times today's sizes
# With more logits than this, sides that hold them all come last: XLA keeps the memory that it took.
MOST_LOGITS = 2_000_000_000
IN_BLOCKS = ("Liger", *(f"zoo, blocks x {times}" for times in BLOCKS))
SPELLINGS = (128, 512, 2048)  # computed together


@contextlib.contextmanager
def patched_constants(module, **values):
    """Changes constants of a module for the functions traced inside."""
    jax.clear_caches()  # a traced loss would be taken again
    with mock.patch.multiple(module, **values):
        yield


def exact(rows: Rows):
    """Measures loss and gradients of a softmax over V, of given hidden states."""
    tokens = (6,) if rows.small else (1120, 8192)
    words = (50,) if rows.small else (10_000, 128_256, 800_000)
    size = 8 if rows.small else HEAD_SIZE
    cases = [(v, n, "tf32") for v in words for n in tokens]
    cases.insert(-1, (words[-1] if rows.small else words[1], tokens[-1], "bfloat16"))
    for vocabulary, count, precision in cases:
        _exact(rows, vocabulary, count, size, precision)


def _exact(rows, vocabulary, count, size, precision):
    dtype = jnp.bfloat16 if precision == "bfloat16" else jnp.float32
    random = jax.random.split(jax.random.key(0), 4)
    hidden = jax.random.normal(random[0], (count, size), dtype)
    weights = jax.random.normal(random[1], (vocabulary, size), dtype) * 0.05
    bias = jax.random.normal(random[2], (vocabulary,), dtype) * 0.1
    targets = jax.random.randint(random[3], (count,), 0, vocabulary)
    inputs = hidden, weights, bias, targets

    def compiled(loss):
        return _loss_side(loss, inputs)

    def blocks(times):
        values = {
            name: getattr(softmax, name) * times
            for name in ("LOGITS_AT_A_TIME", "MOST_ROWS_AT_A_TIME")
        }

        with patched_constants(softmax, **values):
            return compiled(softmax_losses.weighted_sum)

    sides = {f"zoo, blocks x {times}": functools.partial(blocks, times) for times in BLOCKS}
    sides |= {
        "Liger": lambda: _torch_loss_side(rows, inputs, "liger"),
        "PyTorch, eager": lambda: _torch_loss_side(rows, inputs, "eager"),
        "plain": lambda: compiled(softmax_losses.plain),
        "optax": lambda: compiled(softmax_losses.optax_loss),
        "tokamax, without a bias": lambda: compiled(_tokamax()),
        COMPILED: lambda: _torch_loss_side(rows, inputs, "compiled"),
    }
    name = f"V = {vocabulary:,}, N = {count:,}, D = {size}"
    dense_sides = {}
    if vocabulary * count > MOST_LOGITS:
        dense_sides = {side: sides.pop(side) for side in [*sides] if side not in IN_BLOCKS}
    rows.case(name, sides, precision)
    if dense_sides:
        rows.case(f"{name}, all logits in memory", dense_sides, precision)


def _loss_side(loss, inputs):
    """Compiles a loss with its gradients, and returns a side of its value."""
    side = timing.compiled_side(jax.value_and_grad(loss, argnums=(0, 1, 2)), *inputs)

    def run():
        return float(side()[0])

    run.compiled, run.memory = side.compiled, side.memory
    return run


def _tokamax():
    """Returns the loss of tokamax, which has no bias."""
    if (loss := softmax_losses.tokamax_loss()) is None:
        raise Absent("tokamax is not installed")
    return loss


def _torch_loss_side(rows, inputs, kind):
    """Returns a side of PyTorch: eager, compiled, or Liger's fused loss."""
    module = rows.pytorch()
    on = module.get_default_device()
    narrow = inputs[0].dtype == jnp.bfloat16
    hidden, weights, bias, targets = (
        module.from_numpy(np.array(array.astype("f4") if number < 3 else array)).to(on)
        for number, array in enumerate(inputs)
    )
    targets = targets.long()
    trained = [x.bfloat16() if narrow else x for x in (hidden, weights, bias)]
    trained = [x.requires_grad_() for x in trained]

    def plain(hidden, weights, bias, targets):
        logits = module.nn.functional.linear(hidden, weights, bias)
        return module.nn.functional.cross_entropy(logits.float(), targets)

    loss = module.compile(plain) if kind == "compiled" else plain
    if kind == "liger":
        loss = _liger(on)

    def run():
        for tensor in trained:
            tensor.grad = None
        value = loss(*trained, targets)
        value.backward()
        return value.item()

    return run


def _liger(device):
    try:
        from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy
    except ImportError as error:
        raise Absent(f"Liger is not installed: {error}") from error
    if device.type == "cpu":
        raise Absent("Liger's kernels need a GPU")

    def loss(hidden, weights, bias, targets):
        return liger_fused_linear_cross_entropy(hidden, weights, targets, bias)

    return loss


def adaptive_and_sampled(rows: Rows):
    """Measures steps with the adaptive softmax, NCE and importance sampling; tables by rows."""
    batch = 2 if rows.small else 32
    for vocabulary in (50_000,) if rows.small else (100_000, 1_000_000):
        lexicon = steps.zipf_lexicon(vocabulary)
        _adaptive(rows, lexicon, batch)
        for head in (NCE(samples=1024), ImportanceSampling(samples=1024)):
            _sampled(rows, head, lexicon, batch)


def _adaptive(rows, lexicon, batch):
    model = LanguageModel(
        Lookup(256), LSTM(256, 2), AdaptiveSoftmax(cutoffs=(2_000, 10_000, 40_000))
    )
    training = Training(optimizer=SGD(1.0), clip=1.0, row_sparse=True)

    def opponent(params, data):
        module = rows.opponent("adaptive_pytorch")
        return module.torch_side(params, len(lexicon), True, data)

    _step_of(rows, "adaptive, 2 x LSTM-256", model, training, lexicon, (batch, 35), opponent)


def _sampled(rows, head, lexicon, batch):
    model = LanguageModel(Lookup(256), LSTM(256), head)
    training = Training(optimizer=Adagrad(0.1, initial_accumulator=0.1), clip=1.0)

    def opponent(params, data):
        module = rows.opponent("sampled_pytorch")
        return module.torch_side(head, params, lexicon.counts, True, data)

    name = f"{type(head).__name__}, K = 1,024, LSTM-256"
    _step_of(rows, name, model, training, lexicon, (batch, 32), opponent)


def _step_of(rows, name, model, training, lexicon, shape, opponent):
    """Measures a step on words by Zipf's law, beside PyTorch's with sparse gradients."""
    data = steps.zipf_batch(len(lexicon), *shape)
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))
    sides = {
        "PyTorch, sparse": lambda: opponent(params, data),
        "zoo": lambda: steps.step_of(model, _copied(params), lexicon, data, training),
    }
    rows.case(f"{name}, B = {shape[0]}, T = {shape[1]}, V = {len(lexicon):,}", sides)


def _copied(params):
    """Copies parameters to the device; a step donates them."""
    return jax.tree.map(jnp.asarray, params)


def letters(rows: Rows):
    """Measures steps whose words are spelled, or read letter by letter, in blocks of words."""
    lexicon, text, _ = char_cnn.zipf(np.random.default_rng(0), 6 if rows.small else 36)
    data = steps.batch_of(text[:2].astype(np.int32) if rows.small else text.astype(np.int32))
    softmax_model = LanguageModel(Lookup(256), LSTM(256), Softmax())
    models = {name: steps.MODELS[name] for name in ("char_lstm", "char_cnn")}
    models["CNN softmax"] = LanguageModel(Lookup(256), LSTM(256), CNNSoftmax())
    for name, model in models.items():
        params = jax.tree.map(np.asarray, model.init(jax.random.key(0), lexicon))

        def zoo(block, model=model, params=params):
            step = _spelled(model, _copied(params), lexicon, data)
            with patched_constants(row_blocks, BLOCK=block):
                step.trace()
            return step

        def opponent(module, through, model=model, params=params):
            inputs = data.inputs.words, data.inputs.targets
            return module.torch_step(model, params, model.tables(lexicon), *inputs)(through)

        sides = {
            f"zoo, blocks of {block}": functools.partial(zoo, block)
            for block in SPELLINGS[: 1 if rows.small else 3]
        }
        if name == "CNN softmax":
            first = softmax_model.init(jax.random.key(0), lexicon)
            softmax_side = functools.partial(_spelled, softmax_model, first, lexicon, data)
            sides = {"softmax of zoo": softmax_side, **sides}
        else:
            sides |= rows.eager_and_compiled("pytorch_steps", opponent)
        shape = data.weights.shape
        rows.case(f"{name}, B = {shape[0]}, T = {shape[1]}, V = {len(lexicon):,}", sides)


def _spelled(model, params, lexicon, data):
    return steps.step_of(model, params, lexicon, data, Training(optimizer=SGD(1.0), clip=5.0))


MOST_DENSE = 100_000  # words up to which the dense formula's features fit beside the rest


def log_linear_head(rows: Rows):
    """Measures loss and gradients of the log-linear head, of its dense formula and of a softmax."""
    for vocabulary in (600,) if rows.small else (log_linear.VOCABULARY, 800_000):
        random, top_words = np.random.default_rng(0), 50 if rows.small else log_linear.TOP_WORDS
        lexicon = log_linear.synthetic_lexicon(random, vocabulary, top_words)
        builders = log_linear.builders(lexicon)
        sides = {
            "zoo": builders["signatures"],
            "softmax of zoo": builders["softmax (zoo)"],
            "softmax by autodiff": builders["softmax (autodiff)"],
            "dense formula": builders["dense formula"],
        }
        if vocabulary > MOST_DENSE:
            sides["dense formula"] = _too_large
        rows.case(f"N = {log_linear.TOKENS}, D = {log_linear.SIZE}, V = {vocabulary:,}", sides)


def _too_large():
    raise Absent("its matrix of features, [V, F], takes 8 GB")
