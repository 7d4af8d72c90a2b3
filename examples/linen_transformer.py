"""A causal Transformer in flax.linen, whose output layer is any head: one line changes it.

python -m examples.linen_transformer
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import generated
from zoo import heads  # zoo
from zoo.interop import linen  # zoo
from zoo.lexicon import Lexicon  # zoo

# The line to change: heads.LogLinear(), heads.NCE(samples=32), heads.MixtureOfSoftmaxes() ...
HEAD = heads.Softmax()  # zoo


class Block(nn.Module):
    """Attention to the words before, and a layer of its own for each position."""

    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(x[..., 0])
        x += nn.MultiHeadDotProductAttention(num_heads=2)(nn.LayerNorm()(x), mask=mask)
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(2 * x.shape[-1])(nn.LayerNorm()(x))))


class Transformer(nn.Module):
    """A language model: hidden states, and what the head makes of them."""

    lexicon: Lexicon  # zoo
    head: heads.Head  # zoo
    size: int = 32
    layers: int = 1

    @nn.compact
    def __call__(self, inputs, targets, weights):
        """(the loss, what it is trained on; sum of weights * log p(target), exact), in nats."""
        x = nn.Embed(len(self.lexicon), self.size)(inputs)
        x += self.param("position", nn.initializers.normal(0.02), (inputs.shape[1], self.size))[
            None
        ]
        for _ in range(self.layers):
            x = Block()(x)
        head = linen.Head(self.head, self.lexicon, name="head")  # zoo
        loss = head.weighted_loss(x, targets, weights / weights.sum())  # zoo
        return loss, (weights * head.log_prob(x, targets)).sum()  # zoo


def train(loss, params, batches: list) -> tuple[dict, list[float]]:
    """Minimises loss(params, key, *batch); returns the parameters and the loss of each step."""
    optimizer = optax.adam(0.01)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, key, *batch):
        value, gradient = jax.value_and_grad(loss)(params, key, *batch)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for number, batch in enumerate(batches):
        key = jax.random.fold_in(jax.random.key(1), number)
        params, state, value = step(params, state, key, *batch)
        losses.append(float(value))
        if number % 20 == 0 or number == len(batches) - 1:
            print(f"step {number:3}: loss {value:.3f} nats per token")
    return params, losses


def main(head: heads.Head = HEAD, steps: int = 60) -> tuple[list[float], float]:
    """(losses of the steps, nats per token; perplexity of the validation text)."""
    lexicon = generated.lexicon()
    model = Transformer(lexicon, head)
    batches = [*generated.batches(lexicon, steps)]
    variables = jax.jit(model.init)(jax.random.key(0), *batches[0])
    params, tables = variables["params"], variables.get("tables", {})  # zoo

    def loss(params, key, *batch):
        variables = {"params": params, "tables": tables}  # zoo
        return model.apply(variables, *batch, rngs={"noise": key})[0]  # zoo

    params, losses = train(loss, params, batches)
    texts = generated.sentences("validation", generated.VALIDATION)
    inputs, targets, weights = generated.batch(lexicon, texts)
    rngs = {"noise": jax.random.key(2)}  # zoo
    variables = {"params": params, "tables": tables}  # zoo
    _, total = jax.jit(model.apply)(variables, inputs, targets, jnp.asarray(weights), rngs=rngs)
    perplexity = float(np.exp(-total / weights.sum()))
    print(f"{type(head).__name__}: exact perplexity {perplexity:.2f} of {len(lexicon)} words")
    return losses, perplexity


if __name__ == "__main__":
    main()
