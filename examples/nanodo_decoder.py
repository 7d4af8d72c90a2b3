"""A decoder with the interface of DeepMind's nanodo, whose output layer is any head.

`DoConfig`, `TransformerDo` and the loss of packed text, targets shifted and no padding, as there;
lines that are there for the head end with `# zoo`.

python -m examples.nanodo_decoder
"""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import generated, linen_transformer
from zoo import heads  # zoo
from zoo.interop import linen  # zoo
from zoo.lexicon import Lexicon  # zoo

# The line to change: heads.LogLinear(), heads.NCE(samples=32), heads.MixtureOfSoftmaxes() ...
HEAD = heads.Softmax()  # zoo


@dataclasses.dataclass(frozen=True)
class DoConfig:
    """Sizes: D of a state, H heads of attention, L positions, N blocks, F inside, V words."""

    D: int
    H: int
    L: int
    N: int
    F: int
    V: int
    head: heads.Head  # zoo
    lexicon: Lexicon  # zoo


class TBlock(nn.Module):
    """Attention to the words before, and a layer of its own for each position."""

    docfg: DoConfig

    @nn.compact
    def __call__(self, x_BxLxD):
        cfg = self.docfg
        mask = nn.make_causal_mask(x_BxLxD[..., 0])
        attention = nn.MultiHeadDotProductAttention(num_heads=cfg.H, use_bias=False)
        x_BxLxD += attention(nn.LayerNorm(use_bias=False)(x_BxLxD), mask=mask)
        inside = nn.gelu(nn.Dense(cfg.F)(nn.LayerNorm(use_bias=False)(x_BxLxD)))
        return x_BxLxD + nn.Dense(cfg.D)(inside)


class TransformerDo(nn.Module):
    """A language model of packed text."""

    docfg: DoConfig

    def setup(self):
        cfg = self.docfg
        self.embed = nn.Embed(num_embeddings=cfg.V, features=cfg.D)
        self.pos_embed = nn.Embed(num_embeddings=cfg.L, features=cfg.D)
        self.blocks = [TBlock(cfg) for _ in range(cfg.N)]
        self.out_ln = nn.LayerNorm(use_bias=False)
        self.head = linen.Head(cfg.head, cfg.lexicon)  # zoo

    def hidden(self, y_BxL):
        """The state at each position, from which the next word is predicted."""
        places = jnp.arange(y_BxL.shape[1])[None]
        y_BxLxD = self.embed(y_BxL) + self.pos_embed(places)
        for block in self.blocks:
            y_BxLxD = block(y_BxLxD)
        return self.out_ln(y_BxLxD)

    def __call__(self, y_BxL):
        """Logits [B, L, V], where the published model says self.embed.attend(...)."""
        return self.head(self.hidden(y_BxL))  # zoo

    def loss(self, in_BxLplus1):
        """The mean of what is trained; the published loss is the cross-entropy of the logits."""
        x_BxL, y_BxL = in_BxLplus1[:, :-1], in_BxLplus1[:, 1:]
        return self.head.weighted_loss(self.hidden(x_BxL), y_BxL, 1 / y_BxL.size)  # zoo


def packed(lexicon: Lexicon, split: str, count: int, rows: int, length: int) -> np.ndarray:
    """Sentences one after the other, in rows of length + 1 words: int32 [rows, length + 1]."""
    texts = generated.sentences(split, count)
    words = [word for text in texts for word in (*text, lexicon.boundary)]
    return np.resize(lexicon.encode(words), (rows, length + 1)).astype(np.int32)


def main(head: heads.Head = HEAD, steps: int = 60) -> tuple[list[float], float]:
    """(losses of the steps, nats per token; perplexity of the validation text)."""
    lexicon = generated.lexicon()
    model = TransformerDo(DoConfig(32, 2, 32, 1, 64, len(lexicon), head, lexicon))
    text = packed(lexicon, "train", generated.TRAIN, steps * 16, 32).reshape(steps, 16, 33)
    variables = jax.jit(model.init)(jax.random.key(0), text[0, :, :-1])
    params, tables = variables["params"], variables.get("tables", {})  # zoo

    def loss(params, key, in_BxLplus1):
        variables = {"params": params, "tables": tables}  # zoo
        return model.apply(variables, in_BxLplus1, method="loss", rngs={"noise": key})  # zoo

    params, losses = linen_transformer.train(loss, params, [(rows,) for rows in text])
    held_out = packed(lexicon, "validation", generated.VALIDATION, 32, 32)
    logits = jax.jit(model.apply)({"params": params, "tables": tables}, held_out[:, :-1])  # zoo
    nats = optax.softmax_cross_entropy_with_integer_labels(logits, held_out[:, 1:])
    perplexity = float(np.exp(nats.mean()))
    print(f"{type(head).__name__}: exact perplexity {perplexity:.2f} of {len(lexicon)} words")
    return losses, perplexity


if __name__ == "__main__":
    main()
