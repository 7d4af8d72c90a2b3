"""The split softmax of awd-lstm-lm: an adaptive softmax whose words all have whole vectors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.parameter_sharding import HIDDEN, WORDS, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params, Tables
from zoo.heads.adaptive import Clusters
from zoo.heads.checks import Shapes
from zoo.lexicon import Lexicon
from zoo.lexicon.lexicon import frequency_tables


@dataclasses.dataclass(frozen=True)
class SplitSoftmax(Clusters):
    """A softmax over the first words and the tails, and one within each tail.

        p(x | h) = softmax(W_head h + c_head)_x                              x in the head
        p(x | h) = softmax(W_head h + c_head)_tail  softmax(W_tail h + c_tail)_x     x in a tail

    The head has the lexicon's first c_0 words and a class for each tail. Words have the vectors and
    biases of `Softmax`, without the projections of `AdaptiveSoftmax`, so that the vectors can be
    the embedding's; and they are in the order of the lexicon, whatever their counts. This is
    `SplitCrossEntropyLoss` of Merity et al. (2018), of which models of awd-lstm-lm are trained on
    WikiText-103.

    Attributes:
      cutoffs: c_0 < c_1 < ..., ids of words at which the lexicon is cut.
      tied: whether the weights are the embedding's table, which the model passes as
        params["weights"].
      initial_scale: vectors start uniform in +-initial_scale; biases start at 0.

    Example:
      >>> head = heads.SplitSoftmax(cutoffs=(2,))
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    cutoffs: tuple[int, ...] = (2800, 20000, 76000)
    tied: bool = False
    initial_scale: float = 0.05

    parameter_axes = axes(
        weights=(WORDS, HIDDEN), bias=(WORDS,), classes=(None, HIDDEN), class_bias=(None,)
    )
    array_shapes = Shapes(
        {"weights": "V D", "bias": "V", "classes": "C D", "class_bias": "C"},
        {"rank": "int V", "word": "int V"},
    )

    def _tables(self, lexicon: Lexicon) -> Tables:
        return frequency_tables(np.zeros(len(lexicon)))  # ranks are ids

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"weights" [V, D] unless tied, "bias" [V], "classes" [tails, D], "class_bias"}."""
        self._check_lexicon(lexicon)
        word_key, class_key = jax.random.split(key)
        words, tails, scale = len(lexicon), len(self.cutoffs), self.initial_scale
        params = {} if self.tied else {"weights": uniform(word_key, (words, hidden_size), scale)}
        return params | {
            "bias": jnp.zeros(words),
            "classes": uniform(class_key, (tails, hidden_size), scale),
            "class_bias": jnp.zeros(tails),
        }

    def _arrays(self, params: Params, hidden: jax.Array) -> tuple:
        # Tails have no bias in `losses.adaptive`: here it is a column of their vectors, and the
        # hidden states have a number 1 for it.
        bias, first = params["bias"], self.cutoffs[0]
        weights = jnp.concatenate([params["weights"], bias[:, None]], axis=1)
        classes = jnp.pad(params["classes"], ((0, 0), (0, 1)))
        head = jnp.concatenate([weights[:first].at[:, -1].set(0), classes])
        identity = jnp.eye(weights.shape[1], dtype=weights.dtype)
        ends = (*self.cutoffs[1:], len(bias))
        parts = [weights[start:end] for start, end in zip(self.cutoffs, ends, strict=True)]
        return (
            jnp.concatenate([hidden, jnp.ones_like(hidden[..., :1])], axis=-1),
            head,
            jnp.concatenate([bias[:first], params["class_bias"]]),
            [(identity, part) for part in parts],
        )
