"""A decoder with the interface of Flax's Gemma example, whose output layer is any head.

`TransformerConfig`, an `Embedder` whose `encode` is scaled as there, gated blocks, a last norm,
and Gemma 2's soft cap of the logits, in flax.nnx; lines that are there for the head end with
`# zoo`. The published loss holds the logits of all words; Zoo's capped softmax does not.

python -m examples.gemma_decoder
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from examples import generated, nnx_gru
from zoo import heads  # zoo
from zoo.interop import nnx as zoo_nnx  # zoo
from zoo.lexicon import Lexicon  # zoo

# The line to change: heads.LogLinear(), heads.NCE(samples=32), heads.MixtureOfSoftmaxes() ...
HEAD = heads.Softmax(tied=True, bias=False, soft_cap=30.0)  # zoo


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Sizes: layers, words, numbers of a state, numbers inside a block, heads of attention."""

    num_layers: int
    num_embed: int
    embed_dim: int
    hidden_dim: int
    num_heads: int
    head: heads.Head  # zoo
    lexicon: Lexicon  # zoo


class Embedder(nnx.Module):
    """The table of words, which the output layer shares."""

    def __init__(self, config: TransformerConfig, rngs: nnx.Rngs):
        shape = (config.num_embed, config.embed_dim)
        scale = config.embed_dim**-0.5
        self.input_embedding = nnx.Param(scale * rngs.params.normal(shape))

    def encode(self, x):
        """Vectors of words, [..., D]."""
        return self.input_embedding[...][x] * jnp.sqrt(self.input_embedding.shape[1])


class Block(nnx.Module):
    """Attention to the words before, and a gated layer of its own for each position."""

    def __init__(self, config: TransformerConfig, rngs: nnx.Rngs):
        size, inside = config.embed_dim, config.hidden_dim
        self.pre_attention_norm = nnx.RMSNorm(size, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(
            config.num_heads, size, decode=False, use_bias=False, rngs=rngs
        )
        self.pre_ffw_norm = nnx.RMSNorm(size, rngs=rngs)
        self.gating = nnx.Linear(size, 2 * inside, use_bias=False, rngs=rngs)
        self.linear = nnx.Linear(inside, size, use_bias=False, rngs=rngs)

    def __call__(self, x, mask):
        x += self.attn(self.pre_attention_norm(x), mask=mask)
        gate, value = jnp.split(self.gating(self.pre_ffw_norm(x)), 2, axis=-1)
        return x + self.linear(nnx.gelu(gate) * value)


class Transformer(nnx.Module):
    """A language model of sentences."""

    def __init__(self, config: TransformerConfig, rngs: nnx.Rngs):
        self.embedder = Embedder(config, rngs)
        self.layers = nnx.List([Block(config, rngs) for _ in range(config.num_layers)])
        self.final_norm = nnx.RMSNorm(config.embed_dim, rngs=rngs)
        self.head = zoo_nnx.Head(config.head, config.embed_dim, config.lexicon, rngs=rngs)  # zoo
        self.tied = config.head.tied  # zoo

    def states(self, tokens):
        """The state at each position, from which the next word is predicted."""
        x, mask = self.embedder.encode(tokens), nnx.make_causal_mask(tokens)
        for layer in self.layers:
            x = layer(x, mask)
        return self.final_norm(x)

    def head_options(self):
        """The options of a tied head."""
        return {"tied_weights": self.embedder.input_embedding[...]} if self.tied else {}  # zoo

    def __call__(self, tokens):
        """Logits [B, T, V], where the published model says self.embedder.decode(x) and caps it."""
        return self.head(self.states(tokens), **self.head_options())  # zoo

    def loss(self, tokens, targets, weights, rngs):
        """The mean of what is trained; the published loss is the cross-entropy of the logits."""
        arguments = self.states(tokens), targets, weights / weights.sum()
        return self.head.weighted_loss(*arguments, key=rngs, **self.head_options())  # zoo


def main(head: heads.Head = HEAD, steps: int = 60) -> tuple[list[float], float]:
    """(losses of the steps, nats per token; perplexity of the validation text)."""
    lexicon = generated.lexicon()
    model = Transformer(TransformerConfig(1, len(lexicon), 32, 64, 2, head, lexicon), nnx.Rngs(0))
    losses = nnx_gru.train(model, lexicon, steps)
    texts = generated.sentences("validation", generated.VALIDATION)
    inputs, targets, weights = map(jnp.asarray, generated.batch(lexicon, texts))
    logits = nnx.jit(Transformer.__call__)(model, inputs)
    nats = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
    perplexity = float(np.exp((weights * nats).sum() / weights.sum()))
    print(f"{type(head).__name__}: exact perplexity {perplexity:.2f} of {len(lexicon)} words")
    return losses, perplexity


if __name__ == "__main__":
    main()
