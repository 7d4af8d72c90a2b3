"""A Transformer with the interface of Flax's lm1b example, whose output layer is any head.

`TransformerConfig`, `TransformerLM`, targets that are shifted inside and weights of padding, as
there; lines that are there for the head end with `# zoo`.

python -m examples.lm1b_transformer
"""

import collections
import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from examples import generated
from zoo import heads  # zoo
from zoo.data import with_priors  # zoo
from zoo.interop import linen  # zoo
from zoo.lexicon import Lexicon  # zoo
from zoo.priors import Affixes, TopWords  # zoo

# The line to change: heads.LogLinear(), heads.NCE(samples=32), heads.Softmax(label_smoothing=0.1)
HEAD = heads.Softmax()  # zoo


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Sizes of the model, and whether there is dropout."""

    vocab_size: int
    head: heads.Head  # zoo
    lexicon: Lexicon  # zoo
    emb_dim: int = 32
    num_heads: int = 2
    num_layers: int = 1
    mlp_dim: int = 64
    max_len: int = 32
    dropout_rate: float = 0.1
    deterministic: bool = False


def shift_right(x):
    """x [B, T] a position later, 0 first."""
    return jnp.pad(x, ((0, 0), (1, 0)))[:, :-1]


class TransformerLM(nn.Module):
    """A language model of sentences with padding, which is the word 0."""

    config: TransformerConfig

    @nn.compact
    def __call__(self, inputs, weights=None):
        """Logits [B, T, V] of words int32 [B, T]; with weights [B, T], sum of weights * loss."""
        cfg = self.config
        y = nn.Embed(num_embeddings=cfg.vocab_size, features=cfg.emb_dim)(shift_right(inputs))
        y += nn.Embed(num_embeddings=cfg.max_len, features=cfg.emb_dim)(
            jnp.arange(y.shape[1])[None]
        )
        mask = nn.make_causal_mask(inputs)
        for _ in range(cfg.num_layers):
            attention = nn.MultiHeadDotProductAttention(num_heads=cfg.num_heads)
            x = attention(nn.LayerNorm()(y), mask=mask)
            y += nn.Dropout(cfg.dropout_rate, deterministic=cfg.deterministic)(x)
            x = nn.relu(nn.Dense(cfg.mlp_dim)(nn.LayerNorm()(y)))
            y += nn.Dense(cfg.emb_dim)(x)
        y = nn.LayerNorm(name="encoderdecoder_norm")(y)
        head = linen.Head(cfg.head, cfg.lexicon, name="logitdense")  # zoo
        return head(y) if weights is None else head.weighted_loss(y, inputs, weights)  # zoo


def train_step(state, batch, config, tables, rngs):
    """(the state after a step, its loss): `compute_weighted_cross_entropy` is the head's."""
    weights = jnp.where(batch > 0, 1, 0).astype(jnp.float32)

    def loss_fn(params):
        variables = {"params": params, "tables": tables}  # zoo
        loss = TransformerLM(config).apply(variables, batch, weights, rngs=rngs)  # zoo
        return loss / weights.sum()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def padded(lexicon: Lexicon, split: str, count: int, length: int = 16) -> np.ndarray:
    """Sentences with their ends, cut at a length and filled up with 0: int32 [N, length]."""
    texts = [lexicon.encode([*text, "</s>"]) for text in generated.sentences(split, count)]
    return np.array([[*text[:length], *[0] * (length - len(text))] for text in texts], np.int32)


def vocabulary() -> Lexicon:
    """The words of the training text, known by their endings; padding is the word 0."""
    texts = generated.sentences("train", generated.TRAIN)
    counts = collections.Counter(word for text in texts for word in (*text, "</s>"))
    words = Lexicon.from_counts(counts, unknown="<pad>")  # zoo
    return with_priors(words, (TopWords(200), Affixes()))  # zoo


def main(head: heads.Head = HEAD, steps: int = 60) -> tuple[list[float], float]:
    """(losses of the steps, nats per token; perplexity of the validation text)."""
    lexicon = vocabulary()
    config = TransformerConfig(len(lexicon), head, lexicon)
    text = padded(lexicon, "train", generated.TRAIN)
    batches = np.resize(text, (steps, 32, text.shape[1]))
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = jax.jit(TransformerLM(config).init)(keys, batches[0])
    tables = variables.get("tables", {})  # zoo
    state = TrainState.create(apply_fn=None, params=variables["params"], tx=optax.adam(0.01))
    step = jax.jit(train_step, static_argnames="config")
    losses = []
    for number, batch in enumerate(batches):
        dropout, noise = jax.random.split(jax.random.key(2 + number))
        rngs = {"dropout": dropout, "noise": noise}  # zoo
        state, loss = step(state, batch, config, tables, rngs)
        losses.append(float(loss))
        if number % 20 == 0 or number == steps - 1:
            print(f"step {number:3}: loss {loss:.3f} nats per token")
    held_out = padded(lexicon, "validation", generated.VALIDATION)
    model = TransformerLM(dataclasses.replace(config, deterministic=True))
    logits = jax.jit(model.apply)({"params": state.params, "tables": tables}, held_out)  # zoo
    nats = optax.softmax_cross_entropy_with_integer_labels(logits, held_out)
    perplexity = float(np.exp(nats[held_out > 0].mean()))
    print(f"{type(head).__name__}: exact perplexity {perplexity:.2f} of {len(lexicon)} words")
    return losses, perplexity


if __name__ == "__main__":
    main()
