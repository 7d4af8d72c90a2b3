"""A task that is no language model: an encoder-decoder with attention says digits backwards."""

import jax
import jax.numpy as jnp
import numpy as np

from tests import examples
from zoo.arrays import rows
from zoo.cores import LSTM
from zoo.heads import NCE, Softmax
from zoo.training.task import Batch, Task, Validation

WORDS, LONGEST, SIZE, BATCHES = 7, 5, 6, 6
CORE = LSTM(size=SIZE, dropout=0.2)


class Reversal(Task):
    """Word 0 ends a sequence and fills it up; the target is the source backwards."""

    usual_weight, epoch_steps, data = 12.0, BATCHES, "digits"

    def __init__(self, recipe, sampled=False):
        self.recipe, self.total_steps = recipe, BATCHES * recipe.epochs
        self.head = NCE(samples=4, noise_per="token") if sampled else Softmax()
        self.lexicons = {"digits": examples.plain_lexicon(WORDS)}
        self.tables = self.head.tables(self.lexicons["digits"])

    def init(self, key):
        keys = jax.random.split(key, 4)
        return {
            "embedding": {"table": jax.random.normal(keys[0], (WORDS, SIZE))},
            "encoder": CORE.init(keys[1], SIZE),
            "decoder": CORE.init(keys[2], SIZE),
            "head": self.head.init(keys[3], 2 * SIZE, self.lexicons["digits"]),
        }

    def epoch(self, number):
        return [self.batch((self.recipe.seed, number, index)) for index in range(BATCHES)]

    def batch(self, seed):
        generator, count = np.random.default_rng(seed), self.recipe.batch
        lengths = generator.integers(1, LONGEST + 1, (count, 1))
        inside = np.arange(LONGEST) < lengths
        source = np.where(inside, generator.integers(1, WORDS, inside.shape), 0).astype(np.int32)
        target = np.take_along_axis(source, np.maximum(lengths - 1 - np.arange(LONGEST), 0), 1)
        inputs = {"source": source, "target": np.where(inside, target, 0).astype(np.int32)}
        return Batch(inputs, inside.astype(np.float32), np.arange(count, dtype=np.int32))

    def states(self, params, inputs, key=None):
        before = jnp.pad(inputs["target"], ((0, 0), (1, 0)))[:, :-1]
        source, before = (
            rows.take(params["embedding"]["table"], words) for words in (inputs["source"], before)
        )
        carry = CORE.initial_carry(len(source))
        memory, carry = CORE.apply(params["encoder"], source, carry, key=key)
        hidden, _ = CORE.apply(params["decoder"], before, carry, key=key)
        attention = jax.nn.softmax(jnp.einsum("bid,bjd->bij", hidden, memory))
        return jnp.concatenate([hidden, attention @ memory], axis=-1)

    def loss(self, params, tables, inputs, weights, carry, key):
        hidden = self.states(params, inputs, key)
        arguments = params["head"], tables, hidden, inputs["target"], weights
        return self.head.weighted_loss(*arguments, key=key), jnp.zeros(()), carry

    def validate(self, params):
        inputs, weights, _ = self.batch((99,))
        hidden = self.states(params, inputs)
        log_prob = self.head.log_prob(params["head"], self.tables, hidden, inputs["target"])
        value = float(-(log_prob * weights).sum() / weights.sum())
        return Validation(value, {"validation_nats": value}, f"validation {value:.4f} nats")

    def row_tables(self, shapes):
        return [("embedding", "table"), ("head", "weights"), ("head", "bias")]
