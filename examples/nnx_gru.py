"""A GRU in flax.nnx, whose output layer is any head: one line changes it.

python -m examples.nnx_gru
"""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from examples import generated
from zoo import heads  # zoo
from zoo.interop import nnx as zoo_nnx  # zoo
from zoo.lexicon import Lexicon  # zoo

# The line to change: heads.LogLinear(), heads.NCE(samples=32), heads.MixtureOfSoftmaxes() ...
HEAD = heads.Softmax()  # zoo


class Model(nnx.Module):
    """A language model: hidden states, and what the head makes of them."""

    def __init__(self, lexicon: Lexicon, head: heads.Head, size: int, rngs: nnx.Rngs):  # zoo
        self.embedding = nnx.Embed(len(lexicon), size, rngs=rngs)
        self.gru = nnx.RNN(nnx.GRUCell(size, size, rngs=rngs))
        self.head = zoo_nnx.Head(head, size, lexicon, rngs=rngs)  # zoo

    def loss(self, inputs, targets, weights, rngs):
        """The mean of what is trained, nats."""
        hidden = self.gru(self.embedding(inputs))
        return self.head.weighted_loss(hidden, targets, weights / weights.sum(), key=rngs)  # zoo

    def log_prob(self, inputs, targets):
        """log p(target), exact, nats."""
        return self.head.log_prob(self.gru(self.embedding(inputs)), targets)  # zoo


@nnx.jit
def train_step(model, optimizer, rngs, inputs, targets, weights):
    """The loss of a batch, after which the model is another."""
    loss, gradients = nnx.value_and_grad(type(model).loss)(model, inputs, targets, weights, rngs)
    optimizer.update(model, gradients)
    return loss


def train(model, lexicon, steps: int) -> list[float]:
    """The loss of each step, after which the model is another."""
    optimizer, rngs = nnx.Optimizer(model, optax.adam(0.01), wrt=nnx.Param), nnx.Rngs(noise=1)
    losses = []
    for number, batch in enumerate(generated.batches(lexicon, steps)):
        losses.append(float(train_step(model, optimizer, rngs, *map(jnp.asarray, batch))))
        if number % 20 == 0 or number == steps - 1:
            print(f"step {number:3}: loss {losses[-1]:.3f} nats per token")
    return losses


def main(head: heads.Head = HEAD, steps: int = 60) -> tuple[list[float], float]:
    """(losses of the steps, nats per token; perplexity of the validation text)."""
    lexicon = generated.lexicon()
    model = Model(lexicon, head, 32, nnx.Rngs(0))
    losses = train(model, lexicon, steps)
    texts = generated.sentences("validation", generated.VALIDATION)
    inputs, targets, weights = generated.batch(lexicon, texts)
    log_prob = nnx.jit(Model.log_prob)(model, jnp.asarray(inputs), jnp.asarray(targets))
    perplexity = float(np.exp(-(weights * log_prob).sum() / weights.sum()))
    print(f"{type(head).__name__}: exact perplexity {perplexity:.2f} of {len(lexicon)} words")
    return losses, perplexity


if __name__ == "__main__":
    main()
