"""Dynamic evaluation: a model that is trained on the very text it is judged on, as it reads it.

Krause, Kahembwe, Murray and Renals, "Dynamic evaluation of neural sequence models" (2018), sections
3 and 4. A text is read in segments of n words, in one batch row. Each segment is scored first. Then
its words train the parameters, by the gradient g of their mean -log p:

    sgd:  theta' = theta - rate g + decay (theta_0 - theta)
    rms:  theta' = theta - rate g / (sqrt(M) + epsilon) + decay R (theta_0 - theta)

theta_0 are the trained parameters, to which decay leads back. M is the mean of g^2 over batches of
segments of the training text. R = sqrt(M) / m, at most 1 / decay, is greater for parameters that
change often; m is the mean over the arrays of the mean of sqrt(M), as in the authors' code.

No word is scored by parameters that have seen it. Such a model learns from the text, however, and a
comparison with models that do not is unfair to them.
"""

import argparse
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from zoo.data.batches import Batches
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError, check_above, check_choices, check_least, check_rates
from zoo.lab.evaluation import perplexity
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.options import Option, number
from zoo.priors import Grammar

RULES = ("rms", "sgd")
# Batch rows of the training text, and the greatest number of their segments, that estimate M. With
# the authors' 100 rows, their rates have the same effect here.
ROWS, SEGMENTS = 100, 2000


def _settings(text: str) -> "DynamicEvaluation":
    """Parses the argument of --dynamic: the settings, or the rule of the authors alone."""
    rule, *values = text.split(",")
    if rule not in RULES or len(values) not in ((0, 2, 3) if rule == "rms" else (0, 2)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not rms, rms,RATE,DECAY[,EPSILON] or sgd,RATE,DECAY, such as "
            "sgd,0.1,0.001"
        )
    if not values:
        if rule == "sgd":
            raise argparse.ArgumentTypeError(
                "sgd has no usual rate and decay: give them, such as sgd,0.1,0.001"
            )
        return RMS
    rate, decay, *epsilon = values
    above_0 = number(0, 1e6, above=True)
    settings = DynamicEvaluation(rule, above_0(rate), number(0, 0.999)(decay))
    return dataclasses.replace(settings, epsilon=above_0(*epsilon)) if epsilon else settings


@dataclasses.dataclass(frozen=True)
class DynamicEvaluation(Change):
    """The settings of dynamic evaluation, to be chosen on validation text."""

    rule: str
    rate: float
    decay: float
    epsilon: float = 2e-5
    length: int = 5

    name = "dynamic"
    options = (
        Option(
            "--dynamic RULE[,RATE,DECAY[,EPSILON]]",
            "trains the model on each segment of the text once it is scored (Krause et al. 2018); "
            "RULE is rms, or sgd with RATE and DECAY; EPSILON is of rms alone",
            _settings,
            rules="""
            --dynamic excludes --minimal-pairs, --agreement, --exact-match: is for texts
            --dynamic needs --words
            """,
        ),
    )
    apart = learns = True
    title = "learning from the text by dynamic evaluation"

    def __post_init__(self):
        check_choices(self, "dynamic", rule=RULES)
        check_above(self, "dynamic", rate=0, epsilon=0)
        check_rates(self, "dynamic", "decay")
        check_least(self, "dynamic", length=1)

    @classmethod
    def from_arguments(cls, arguments, run):
        return arguments.dynamic

    def apply(self, run):
        """Returns the run that reads one batch row, and is trained on segments once scored."""
        model = run.require_language_model("--dynamic")
        if isinstance(model.head.background, Grammar):
            raise UserError(
                "--dynamic has no gradient where a grammar forbids words: leave --constrain out."
            )
        evaluation = dataclasses.replace(run.experiment.evaluation, batch=1)
        experiment = dataclasses.replace(run.experiment, evaluation=evaluation)
        return run.with_change(self, experiment=experiment)

    @property
    def description(self) -> str:
        """The settings in words."""
        has_epsilon = self.rule == "rms" and self.epsilon != RMS.epsilon
        epsilon = f"epsilon {self.epsilon:g}, " if has_epsilon else ""
        return (
            f"dynamic evaluation ({self.rule}, rate {self.rate:g}, decay {self.decay:g}, {epsilon}"
            f"segments of {self.length})"
        )

    @property
    def sentence(self):
        return f"learns from the text that it is judged on, by {self.description}"


# As in the authors' code.
RMS = DynamicEvaluation("rms", rate=5e-5, decay=0.002)


def segment_loss(params, model, tables, batch, carry):
    """Computes the mean -log p of the words of a segment that training would train on."""
    words, targets, reset, weights = batch
    scores, after = model.log_prob_and_log_z(
        params, tables, words, targets, carry, reset=reset, prepared=model.prepared(params, tables)
    )
    # Not weights * log p: a word of probability 0 that is not counted would make it NaN.
    lost = jnp.where(weights > 0, -weights * scores[0], 0).sum()
    return lost / jnp.maximum(weights.sum(), 1), (scores, after)


def score(
    model,
    params,
    tables,
    text: EncodedText,
    settings: DynamicEvaluation,
    state: str,
    boundary: int | None,
    squares=None,
) -> perplexity.Scores:
    """Scores a text, and trains the model on each of its segments once it is scored."""
    step = jax.jit(functools.partial(_step, model=model, settings=settings), donate_argnums=(0, 4))
    scales = _scales(squares, settings) if settings.rule == "rms" else None

    def scored_batches():
        trained, carry = jax.tree.map(jnp.copy, params), model.initial_carry(1)  # they are donated
        for batch in Batches(text, 1, settings.length, state, boundary):
            arrays = batch.words, batch.targets, batch.reset, batch.trained
            scores, trained, carry = step(trained, params, scales, tables, carry, arrays)
            if np.isnan(np.asarray(scores[0])[batch.positions >= 0]).any():
                raise UserError(
                    f"the model diverges under {settings.description}: give --dynamic "
                    f"{settings.rule} a smaller rate."
                )
            yield batch, scores

    return perplexity.collect(text, scored_batches())


def _step(params, origin, scales, tables, carry, batch, *, model, settings):
    """Returns ((log p, log Z) under params, the parameters after the segment, the carry)."""
    gradient = jax.grad(segment_loss, has_aux=True)
    changes, (scores, carry) = gradient(params, model, tables, batch, carry)
    if scales is None:
        scales = jax.tree.map(lambda _: (1.0, 1.0), params)

    def updated(value, first, change, scale):
        by_rate, by_decay = scale
        back = settings.decay * by_decay * (first - value)
        return value - settings.rate * by_rate * change + back

    trained = jax.tree.map(updated, params, origin, changes, scales)
    return scores, trained, carry


def _scales(squares, settings):
    """Returns (1 / (sqrt(M) + epsilon), R) of each array."""
    roots = jax.tree.map(jnp.sqrt, squares)
    mean = float(np.mean([leaf.mean() for leaf in jax.tree.leaves(roots)]))
    ceiling = 1 / settings.decay if settings.decay else 0.0

    def scale(root):
        return 1 / (root + settings.epsilon), jnp.minimum(root / mean, ceiling)

    return jax.tree.map(scale, roots)


def _add_squares(sums, carry, params, tables, batch, *, model):
    gradient = jax.grad(segment_loss, has_aux=True)
    changes, (_, carry) = gradient(params, model, tables, batch, carry)
    return jax.tree.map(lambda total, change: total + change**2, sums, changes), carry


def mean_squares(
    model, params, tables, text: EncodedText, settings: DynamicEvaluation, boundary: int | None
):
    """Computes M, the mean of g^2 over segments of the training text, like the parameters."""
    batches = Batches(text, ROWS, settings.length, "carried", boundary)
    # Evenly spread over the text; the carry passes from each to the one read after it.
    chosen = np.unique(np.linspace(0, len(batches) - 1, SEGMENTS).astype(int))
    add = jax.jit(functools.partial(_add_squares, model=model), donate_argnums=(0, 1))
    sums, carry = jax.tree.map(jnp.zeros_like, params), model.initial_carry(ROWS)
    bar = perplexity.bar(len(chosen), "segments of the training text")
    with jax.default_matmul_precision(perplexity.PRECISION), bar as advance:
        for index in chosen.tolist():
            batch = batches[index]
            arrays = batch.words, batch.targets, batch.reset, batch.trained
            sums, carry = add(sums, carry, params, tables, arrays)
            advance(1)
    total = sum(float(leaf.sum()) for leaf in jax.tree.leaves(sums))
    if not (np.isfinite(total) and total > 0):
        raise UserError(
            f"the squares of the gradients sum to {total} over the training text, which gives "
            "--dynamic rms no scale: give --dynamic sgd,RATE,DECAY."
        )
    return jax.tree.map(lambda square_sum: square_sum / len(chosen), sums)
