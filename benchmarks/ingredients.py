"""What each ingredient of a regularised LSTM is worth: variants of a recipe, trained side by side.

Variants that differ in numbers alone (dropout rates, penalties, learning rate, weight decay, seed)
are one training step under `jax.vmap`: an accelerator, which a small model leaves idle, trains
forty of them in seven times the time of one (NVIDIA H200, `ptb_awd_small`). Each gets the updates
that train.py would give it; but all windows have `training.length` positions, and the parameters
after the last step are judged instead of the best. Without --like, the variants are the recipe and
the recipe without each ingredient in turn, three seeds each.

    python -m benchmarks.ingredients ingredients.json
    python -m benchmarks.ingredients --like records/ptb_variants.json again.json

The result is {"config", "set", "parameters" of a variant, "device", ..., "variants": {name:
{"settings": {field: number}, "validation": nats, "test": nats}}}, with fields of `NUMBERS`; --like
takes its recipe and variants.
RESULT.npz beside it has, for each split, its sentences' losses, SPLIT/nats float32 [variants,
sentences], and counted tokens, SPLIT/tokens int32 [sentences]: intervals are computed from them.
"""

import copy
import dataclasses
import datetime
import functools
import json
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import configs
from benchmarks import timing
from zoo import optimizers
from zoo.configuration.fields import changed
from zoo.configuration.overrides import apply_settings
from zoo.data.batches import Batches
from zoo.errors import UserError
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.runs import provenance
from zoo.lab.training import tasks
from zoo.lab.training.step import Batch, TrainState, train_step
from zoo.lab.training.tasks import Words, words_loss
from zoo.lab.training.updates import Updates

# Fields of the model; each leaves its ingredient out where it is 0.
MODEL_FIELDS = (
    "model.word_dropout",
    "model.core.input_dropout",
    "model.core.dropout",
    "model.output_dropout",
    "model.core.recurrent_dropout",
    "model.activation_penalty",
    "model.temporal_penalty",
)
RATE, DECAY, SEED = (
    "training.optimizer.learning_rate",
    "training.optimizer.weight_decay",
    "training.seed",
)
NUMBERS = (*MODEL_FIELDS, DECAY, RATE, SEED)
# The fields of Training that variants have; every other one must have its default.
FOLLOWED = ("batch", "length", "windows", "optimizer", "clip", "epochs", "seed", "compute")
SEEDS = range(3)


class Traced:
    """Stands for a field's number where JAX traces it; it counts as not 0."""

    def __init__(self, value):
        """Wraps a traced scalar."""
        self.value = value

    def __bool__(self):
        return True

    def __mul__(self, other):
        return self.value * other


def number_of(recipe, path: str):
    """Returns the value of a field.

    Args:
      recipe: the experiment.
      path: names of fields with points between them.
    """
    return functools.reduce(getattr, path.split("."), recipe)


def fields_of(recipe) -> tuple[str, ...]:
    """Returns the fields that leave an ingredient out where they are 0.

    Args:
      recipe: the experiment; not every optimiser has a decay of weights.
    """
    decays = hasattr(recipe.training.optimizer, "weight_decay")
    return (*MODEL_FIELDS, DECAY) if decays else MODEL_FIELDS


def check(recipe):
    """Raises UserError unless variants are trained as train.py trains this recipe.

    Args:
      recipe: the experiment, without windows of random length.
    """
    training = recipe.training
    for field in dataclasses.fields(training):
        value = getattr(training, field.name)
        if field.name not in FOLLOWED and value != field.default:
            raise UserError(f"training.{field.name}={value} is not for variants: leave it out.")
    if recipe.evaluation.state != "carried" or recipe.init_from:
        raise UserError("variants need evaluation.state=carried, and no init_from.")
    if not training.optimizer.learning_rate:
        raise UserError("variants need training.optimizer.learning_rate above 0.")
    if not recipe.model.core.variational:  # the last window, filled up, would have other masks
        raise UserError("variants need model.core.variational=True.")


def with_traced(model, values: dict):
    """Copies a model with traced numbers in some fields, whose checks they could not pass.

    Args:
      model: a frozen dataclass.
      values: {path from "model.": traced scalar}.
    """
    model = copy.copy(model)
    object.__setattr__(model, "core", copy.copy(model.core))
    for path, value in values.items():
        *parts, field = path.split(".")[1:]
        object.__setattr__(model.core if parts else model, field, Traced(value))
    return model


class Variants:
    """Variants of a recipe as arrays of their numbers, and their training."""

    def __init__(self, recipe, variants: dict[str, dict]):
        """Reads the texts of the recipe.

        Args:
          recipe: the experiment, which has every ingredient; see `check`.
          variants: {name: {field: number}}.
        """
        recipe = changed(recipe, {"training.windows": None})
        check(recipe)
        self.task: Any = tasks.prepare(recipe, 1)
        self.model, self.training, self.names = recipe.model, recipe.training, list(variants)
        recipes = [changed(recipe, settings) for settings in variants.values()]
        self.numbers = {
            path: jnp.array([number_of(variant, path) for variant in recipes], jnp.float32)
            for path in (*fields_of(recipe), RATE)
        }
        self.seeds = [variant.training.seed for variant in recipes]
        self.keys = jnp.stack([jax.random.key_data(jax.random.key(s + 1)) for s in self.seeds])
        self.total_steps = self.task.epoch_steps * self.training.epochs

    def _optimizer(self, numbers):
        optimizer = copy.copy(self.training.optimizer)
        if DECAY in numbers:
            object.__setattr__(optimizer, "weight_decay", Traced(numbers[DECAY]))
        steps = self.task.epoch_steps, self.total_steps
        built = optimizers.build(optimizer, self.training.clip, *steps)
        # Schedules do not take a traced peak; every update is a multiple of its learning rate.
        return Updates(optax.chain(built, optax.scale(numbers[RATE] / optimizer.learning_rate)))

    def draw_states(self) -> TrainState:
        """Draws the states before the first step, leaves [variants, ...]."""

        def init_variant(key, numbers):
            params = self.task.init(key)
            state = self._optimizer(numbers).init(params)
            return TrainState(params, state, self.task.carry(), jnp.zeros((), jnp.int32))

        keys = jnp.stack([jax.random.key(seed) for seed in self.seeds])
        return jax.jit(jax.vmap(init_variant))(keys, self.numbers)

    def _step(self, state, batch, key, numbers, tables):
        model = with_traced(self.model, {path: numbers[path] for path in MODEL_FIELDS})
        state, metrics = train_step(
            state,
            tables,
            batch,
            key,
            loss=functools.partial(words_loss, model),
            optimizer=self._optimizer(numbers),
            usual_weight=self.task.usual_weight,
            compute=self.training.compute,
        )
        return state, metrics.loss / metrics.tokens

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def steps(self, states, batches: Batch, tables):
        """Does a step of every variant with each batch; returns (states, losses [batches, S]).

        Args:
          states: of all variants.
          batches: leaves [batches, ...].
          tables: of the task.
        """

        def step_all(states, batch):
            batched = jax.vmap(self._step, in_axes=(0, None, 0, 0, None))
            return batched(states, batch, self.keys, self.numbers, tables)

        return jax.lax.scan(step_all, states, batches)

    def epoch(self) -> Batch:
        """Stacks the batches of an epoch; the last is filled up by positions of weight 0."""
        length = self.training.length

        def filled(array):
            width = length - array.shape[1] if array.ndim == 2 else 0
            return np.pad(array, ((0, 0), (0, width))) if width else array

        epoch = self.task.epoch(0)
        numbers = range(len(epoch))
        batches = [jax.tree.map(filled, self.task.part(epoch, number)) for number in numbers]
        return jax.tree.map(lambda *arrays: jnp.asarray(np.stack(arrays)), *batches)

    def sentence_losses(self, params, corpus) -> tuple[np.ndarray, np.ndarray]:
        """Computes the losses of a text's sentences exactly.

        Args:
          params: of all variants.
          corpus: the text.

        Returns:
          nats, sums of -log p over the counted tokens, float64 [variants, sentences], and the
          number of these tokens, int32 [sentences].
        """
        recipe, task = self.task.experiment, self.task
        text = recipe.vocabulary.encode(corpus, task.lexicon)
        batch, length = recipe.evaluation.batch, recipe.evaluation.length
        windows = Batches(text, batch, length, "carried", task.boundary)
        tables = task.model.tables(task.lexicon)
        carry = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (len(self.names), *x.shape)),
            task.model.initial_carry(batch),
        )
        losses = np.zeros((len(self.names), len(text.words)))
        predicted = np.zeros(len(text.words), bool)
        for window in windows:
            inputs = Words(window.words, window.targets, window.reset)
            log_probs, carry = self._scored(params, tables, inputs, carry)
            is_token = window.positions >= 0
            losses[:, window.positions[is_token]] = -np.asarray(log_probs)[:, is_token]
            predicted[window.positions[is_token]] = True
        counted, sentences = text.counted & predicted, len(text.starts)
        sentence = np.repeat(np.arange(sentences), text.lengths)[counted]
        nats = [np.bincount(sentence, variant[counted], minlength=sentences) for variant in losses]
        return np.stack(nats), np.bincount(sentence, minlength=sentences).astype(np.int32)

    @functools.partial(jax.jit, static_argnums=0)
    def _scored(self, params, tables, inputs, carry):
        def variant_log_prob(params, carry):
            return self.model.log_prob(
                params, tables, inputs.words, inputs.targets, carry, reset=inputs.reset
            )

        with jax.default_matmul_precision(PRECISION):
            return jax.vmap(variant_log_prob)(params, carry)

    def train(self, log=print):
        """Trains all variants; returns their parameters.

        Args:
          log: called with each line.
        """
        states, batches = self.draw_states(), self.epoch()
        for number in range(self.training.epochs):
            begun = time.perf_counter()
            carry = jax.tree.map(jnp.zeros_like, states.carry)
            states, losses = self.steps(states._replace(carry=carry), batches, self.task.tables)
            losses = np.asarray(losses).mean(axis=0)
            took = time.perf_counter() - begun
            spread = f"{np.nanmin(losses):.4f} to {np.nanmax(losses):.4f}"
            log(f"epoch {number + 1}: {took:.1f} s, training losses {spread}")
        return states.params


def ablations(recipe) -> dict[str, dict]:
    """Returns the variants that lack one ingredient each, and the whole recipe, by seeds.

    Args:
      recipe: the experiment.
    """
    variants = {"all": {}}
    for path in fields_of(recipe):
        if number_of(recipe, path):
            variants[f"without {path.partition('.')[2]}"] = {path: 0.0}
    return {
        f"{name}, seed {seed}": {**settings, SEED: seed}
        for name, settings in variants.items()
        for seed in SEEDS
    }


def main(arguments: list[str] | None = None):
    """Trains the variants, prints their table and keeps it.

    Args:
      arguments: of the command line; None for the program's own.
    """
    parser = timing.parser(__doc__)
    parser.add_argument("result", type=pathlib.Path, metavar="RESULT.json")
    parser.add_argument("--like", type=pathlib.Path, metavar="RESULT.json")
    parser.add_argument("--config", default="ptb_awd_small")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    options = parser.parse_args(arguments)
    like = json.loads(options.like.read_text()) if options.like else {}
    config, changes = like.get("config", options.config), [*like.get("set", []), *options.set]
    recipe = apply_settings(configs.load(config), changes)
    variants = {name: row["settings"] for name, row in like.get("variants", {}).items()}
    variants = variants or ablations(recipe)
    for name, settings in variants.items():
        for path in settings:
            if path not in NUMBERS:
                parser.error(f"{name} sets {path}, which is none of {', '.join(NUMBERS)}")
    try:
        variant_runs = Variants(recipe, variants)
    except UserError as error:
        parser.error(str(error))
    params = variant_runs.train()
    table: dict[str, dict] = {name: {"settings": settings} for name, settings in variants.items()}
    splits = [split for split in variant_runs.task.corpora if split != "train"]
    arrays = {}
    for split in splits:
        nats, tokens = variant_runs.sentence_losses(params, variant_runs.task.corpora[split])
        arrays |= {f"{split}/nats": nats.astype(np.float32), f"{split}/tokens": tokens}
        for row, losses in zip(table.values(), nats, strict=True):
            row[split] = float(losses.sum() / tokens.sum())
    result = {
        "config": config,
        "set": changes,
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(params)) // len(variants),
        "device": jax.devices()[0].device_kind,
        "versions": provenance.versions(),
        "revision": provenance.revision(),
        "date": datetime.date.today().isoformat(),
        "variants": table,
    }
    options.result.write_text(json.dumps(result, indent=1) + "\n")
    np.savez_compressed(options.result.with_suffix(".npz"), **arrays)
    width = max(map(len, variants))
    for name, row in table.items():
        print(f"{name:{width}}", *(f"{split} {row[split]:.4f}" for split in splits))


if __name__ == "__main__":
    main()
