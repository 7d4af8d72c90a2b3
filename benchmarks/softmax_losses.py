"""Memory and time of the exact softmax loss: Zoo's, and what else JAX programs use.

Temporary memory of loss and gradients (of hidden, weights and bias) at N = 8,192 tokens, D = 512
and V = 128,256 words, from XLA's memory analysis of the compiled function, without arguments and
results; nothing is run. Times of a step, forward and backward, at N = 1,024, D = 256 and V =
50,000, interleaved. The sides:

- zoo: `zoo.losses.weighted_softmax_loss`, as training uses it; in bfloat16; and with blocks of 32
  tokens, for its memory;
- zoo, losses by token: `zoo.losses.softmax_loss`, summed;
- plain: the formula, with all logits in memory;
- optax: `optax.softmax_cross_entropy_with_integer_labels` of all logits;
- checkpointed chunks: the formula by 64 chunks of 16 tokens or more, `jax.checkpoint` within
  `jax.lax.map`;
- entropy, divergence: memory of `zoo.losses.softmax_statistics`, and of `softmax_kl_divergence` of
  two models with the gradients of both;
- tokamax: its portable `linear_softmax_cross_entropy_loss`, where it is installed; without a bias.

    python -m benchmarks.softmax_losses
"""

import functools
import importlib
import importlib.util

import jax
import jax.numpy as jnp
import optax

from benchmarks import timing
from zoo import losses
from zoo.losses import softmax

TOKENS, SIZE, VOCABULARY = 8_192, 512, 128_256
TIMED = 1_024, 256, 50_000
CHUNKS = 64
LEAST_TOKENS = 16  # of a chunk
SMALL_BLOCK = 32  # tokens of a block, where memory counts more than time


def weighted_sum(hidden, weights, bias, targets, block=None):
    """Computes the mean loss as training does, with weights of tokens that are not constants."""
    token_weights = jnp.where(targets < 0, 0, 1 / targets.size)
    return losses.weighted_softmax_loss(hidden, weights, bias, targets, token_weights, block)


def by_token(hidden, weights, bias, targets):
    """Computes the mean of Zoo's losses by token."""
    return losses.softmax_loss(hidden, weights, bias, targets)[0].mean()


def plain(hidden, weights, bias, targets):
    """Computes the mean loss with all logits in memory."""
    return softmax.plain_terms(softmax.TermOptions(), (hidden, weights, bias), targets).loss.mean()


def optax_loss(hidden, weights, bias, targets):
    """Computes the mean loss with optax, in at least float32."""
    logits = (hidden @ weights.T + jnp.broadcast_to(bias, (len(hidden), len(bias)))).astype("f4")
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def in_chunks(hidden, weights, bias, targets):
    """Computes the mean loss by chunks of tokens whose logits are computed again for gradients."""

    @jax.checkpoint
    def chunk_loss(tokens):
        states, words = tokens
        return optax_loss(states, weights, bias, words)

    chunks = min(CHUNKS, len(targets) // LEAST_TOKENS)
    tokens = jax.tree.map(lambda x: x.reshape(chunks, -1, *x.shape[1:]), (hidden, targets))
    return jax.lax.map(chunk_loss, tokens).mean()


def tokamax_loss():
    """Returns the loss of tokamax; None if it is not installed."""
    try:
        import tokamax
        from absl import flags
    except ImportError:
        return None
    flags.FLAGS.mark_as_parsed()  # else it would read this program's arguments

    def loss(hidden, weights, bias, targets):
        inputs = hidden, targets, weights.T
        return tokamax.linear_softmax_cross_entropy_loss(*inputs, reduction="mean")

    return loss


SIDES = {
    "zoo": weighted_sum,
    "zoo, losses by token": by_token,
    "plain": plain,
    "optax": optax_loss,
    "checkpointed chunks": in_chunks,
}


def entropy(hidden, weights, bias, targets):
    """Computes the sum of the entropies."""
    return losses.softmax_statistics(hidden, weights, bias, targets).entropy.sum()


def divergence(*tables):
    """Computes the sum of the divergences of one model from another."""
    return losses.softmax_kl_divergence(*tables).sum()


def step(loss, argnums=(0, 1, 2)):
    """Returns loss and gradients."""
    return jax.value_and_grad(loss, argnums=tuple(argnums))


def shapes(tokens, size, vocabulary, dtype=jnp.float32):
    """Returns the shapes of hidden states, weights, bias and targets."""
    sizes = (tokens, size), (vocabulary, size), (vocabulary,)
    tables = [jax.ShapeDtypeStruct(shape, dtype) for shape in sizes]
    return *tables, jax.ShapeDtypeStruct((tokens,), jnp.int32)


def memory_of(loss, inputs, argnums=(0, 1, 2)):
    """Returns the bytes of temporary arrays of a loss with its gradients."""
    analysis = jax.jit(step(loss, argnums)).lower(*inputs).compile().memory_analysis()
    return float(analysis.temp_size_in_bytes)


def sides(tokens, vocabulary, size=SIZE, dtype="float32", in_blocks=None):
    """Returns sides on random inputs, of JAX programs and of PyTorch's.

    `in_blocks`: whether they hold blocks of logits, or all; None for both.
    """
    random = jax.random.split(jax.random.key(0), 4)
    inputs = [
        jax.random.normal(key, shape.shape, shape.dtype) * 0.1
        for key, shape in zip(random, shapes(tokens, size, vocabulary, dtype)[:3], strict=False)
    ]
    inputs.append(jax.random.randint(random[3], (tokens,), 0, vocabulary))

    def compiled(loss):
        return timing.compiled_side(step(loss), *inputs)

    loss_sides = {name: compiled(loss) for name, loss in SIDES.items()}
    for times in (8, 64):  # today's blocks
        limits = {
            name: getattr(softmax, name) * times
            for name in ("LOGITS_AT_A_TIME", "MOST_ROWS_AT_A_TIME")
        }
        larger = timing.traced_with(compiled(weighted_sum), softmax, **limits)
        loss_sides[f"zoo, blocks x {times}"] = larger
    tokamax = tokamax_loss()
    if tokamax:
        loss_sides["tokamax"] = compiled(tokamax)
    if importlib.util.find_spec("torch"):
        loss_sides |= torch_sides(*inputs)
    return {
        name: side
        for name, side in loss_sides.items()
        if in_blocks in (None, name.startswith(("zoo", "Liger", "checkpointed")))
    }


def torch_sides(hidden, weights, bias, targets):
    """Returns sides of PyTorch, and of Liger where it is installed."""
    from benchmarks import pytorch

    torch, dtype = pytorch.torch, getattr(pytorch.torch, hidden.dtype.name)
    parameters = [
        pytorch.tensor(array.astype("f4")).to(dtype).requires_grad_()
        for array in (hidden, weights, bias)
    ]
    targets = pytorch.tensor(targets)

    def dense(hidden, weights, bias):
        logits = torch.nn.functional.linear(hidden, weights, bias)
        return torch.nn.functional.cross_entropy(logits.float(), targets)

    def liger(hidden, weights, bias):
        functions = importlib.import_module("liger_kernel.transformers.functional")
        return functions.liger_fused_linear_cross_entropy(hidden, weights, targets, bias)

    def side(loss):
        def run():
            for parameter in parameters:
                parameter.grad = None
            value = loss(*parameters)
            value.backward()
            return value.item()

        return run

    liger_sides = {"Liger": side(liger)} if importlib.util.find_spec("liger_kernel") else {}
    return liger_sides | pytorch.eager_and_compiled(lambda through: side(through(dense)))


def main():
    """Prints the two tables."""
    rounds = timing.parser(__doc__, rounds=9).parse_args().rounds  # 0: memory alone
    tokamax = tokamax_loss()
    loss_by_side = SIDES | ({"tokamax": tokamax} if tokamax else {})
    sizes = TOKENS, SIZE, VOCABULARY
    memory = {name: memory_of(loss, shapes(*sizes)) for name, loss in loss_by_side.items()}
    memory["zoo, bfloat16"] = memory_of(weighted_sum, shapes(*sizes, jnp.bfloat16))
    inputs = shapes(*sizes)
    small_blocks = functools.partial(weighted_sum, block=SMALL_BLOCK)
    memory[f"zoo, {SMALL_BLOCK} tokens at a time"] = memory_of(small_blocks, inputs)
    memory["zoo, entropy"] = memory_of(entropy, inputs)
    memory["zoo, divergence"] = memory_of(divergence, (*inputs[:3], *inputs[:3]), range(6))
    title = f"temporary memory, N = {TOKENS:,}, D = {SIZE}, V = {VOCABULARY:,}"
    timing.print_table(title, memory, "optax", "MB")
    if not rounds:
        return
    tokens, size, vocabulary = TIMED
    timed_sides = sides(tokens, vocabulary, size)
    runs = {name: timed_sides[name] for name in loss_by_side}
    title = f"time of a step, N = {tokens:,}, D = {size}, V = {vocabulary:,}"
    timing.compare(title, runs, rounds, "optax")


if __name__ == "__main__":
    main()
