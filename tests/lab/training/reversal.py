"""A task that is no language model: an encoder-decoder with attention says digits backwards."""

import dataclasses

import jax
import numpy as np

from tests import examples
from zoo import cores, heads
from zoo.base.arrays import row_lookup
from zoo.lab.training import tasks
from zoo.lab.training.step import Batch
from zoo.lab.training.tasks import Task, Validation
from zoo.models import Model

WORDS, LENGTH, SIZE, BATCHES = 7, 5, 6, 6
CORE, LEXICON = cores.LSTM(size=SIZE, dropout=0.2), examples.plain_lexicon(WORDS)


class Reversal(Task):
    """The target is the source backwards; of some, the last digits have no weight."""

    usual_weight, epoch_steps, data, lexicons = 12.0, BATCHES, "digits", {"digits": LEXICON}

    def __init__(self, recipe, sampled=False):
        self.recipe, self.total_steps = recipe, BATCHES * recipe.epochs
        self.head = heads.NCE(samples=4, noise_per="token") if sampled else heads.Softmax()
        self.tables = self.head.tables(LEXICON)

    def init(self, key):
        keys = jax.random.split(key, 4)
        table = jax.random.normal(keys[0], (WORDS, SIZE))
        encoder, decoder = (CORE.init(core_key, SIZE) for core_key in keys[1:3])
        head = self.head.init(keys[3], SIZE, LEXICON)
        return {"embedding": {"table": table}, "encoder": encoder, "decoder": decoder, "head": head}

    def epoch(self, number):
        generator, batch = np.random.default_rng((self.recipe.seed, number)), self.recipe.batch
        sources = generator.integers(1, WORDS, (BATCHES, batch, LENGTH), np.int32)
        lengths = generator.integers(1, LENGTH + 1, (BATCHES, batch, 1))
        weights, batch_rows = (
            np.float32(np.arange(LENGTH) < lengths),
            np.arange(batch, dtype=np.int32),
        )
        return [
            Batch((x, x[:, ::-1]), w, batch_rows) for x, w in zip(sources, weights, strict=True)
        ]

    def states(self, params, source, target, key=None):
        before = jax.numpy.pad(target, ((0, 0), (1, 0)))[:, :-1]  # 0 begins
        source, before = (
            row_lookup.take(params["embedding"]["table"], x) for x in (source, before)
        )
        empty = CORE.initial_carry(len(source))
        memory, carry = CORE.apply(params["encoder"], source, empty, key=key)
        hidden, _ = CORE.apply(params["decoder"], before, carry, key=key)
        return hidden + jax.nn.softmax(hidden @ memory.mT) @ memory

    def loss(self, params, tables, inputs, weights, carry, key):
        hidden = self.states(params, *inputs, key)
        loss = self.head.weighted_loss(params["head"], tables, hidden, inputs[1], weights, key=key)
        return loss, jax.numpy.zeros(()), carry

    def validate(self, params, mesh=None):
        (source, target), weights, _ = self.epoch(99)[0]
        hidden = self.states(params, source, target)
        log_prob = self.head.log_prob(params["head"], self.tables, hidden, target)
        value = float(-(log_prob * weights).sum() / weights.sum())
        return Validation(value, {"nats": value}, f"validation {value:.4f} nats")

    def row_tables(self, shapes):
        return [("embedding", "table"), ("head", "weights"), ("head", "bias")]


@dataclasses.dataclass(frozen=True)
class Digits(Model):
    """Its model, which an experiment may have."""

    sampled: bool = False


tasks.task_of.register(Digits, lambda model, recipe, *_: Reversal(recipe.training, model.sampled))
