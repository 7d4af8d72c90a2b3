"""Steps combined from several steps: ensembles, and shallow fusion with a language model.

Each is a step function again, for all decoders. Its carry is the tuple of its members' carries.
Members may be any models, with heads of any kind, over the same words in the same order.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.decoding.steps import Step, as_tree
from zoo.errors import UserError
from zoo.lexicon import Lexicon

AVERAGES = ("probabilities", "logs")


def _read(steps, words, carries):
    """Calls each member; returns (their log-probabilities, their carries)."""
    given = [step(words, carry) for step, carry in zip(steps, carries, strict=True)]
    sizes = {log_probs.shape[-1] for log_probs, _ in given}
    if len(sizes) > 1:
        raise ValueError(
            f"the steps of an ensemble have {sorted(sizes)} words: give steps over the same words"
        )
    return [log_probs for log_probs, _ in given], tuple(carry for _, carry in given)


@dataclasses.dataclass(frozen=True)
class _Average:
    of: str

    def __call__(self, steps, weights, words, carries):
        log_probs, carries = _read(steps, words, carries)
        stacked = jnp.stack(log_probs)
        weights = weights.astype(stacked.dtype)[:, None, None]
        if self.of == "probabilities":
            return jax.nn.logsumexp(stacked, axis=0, b=weights), carries
        # A word of probability 0 by one member has 0 by all; a member of weight 0 is left out.
        weighted = jnp.where(weights > 0, weights * stacked, 0).sum(axis=0)
        return jax.nn.log_softmax(weighted), carries


def average(
    steps: Sequence[Step], weights: Sequence[float] | None = None, of: str = "probabilities"
) -> jax.tree_util.Partial:
    """Returns the step of an ensemble, with weights a_i that add up to 1:

        p(w) = sum_i a_i p_i(w)  of "probabilities",   p(w) = prod_i p_i(w)^a_i / Z  of "logs".

    Args:
      steps: the members' steps.
      weights: one for each step, 0 or more, of any sum above 0; None for equal weights.
      of: "probabilities" or "logs".

    Raises:
      UserError: `steps` is empty, the weights do not fit, or `of` is neither of the two.

    Example:
      >>> even = jax.tree_util.Partial(follow, jnp.full((3, 3), -jnp.log(3)))
      >>> both = decoding.average((step, even), weights=(3, 1))
      >>> log_p, carries = both(first, (carry, carry))
      >>> print(jnp.exp(log_p))  # 3/4 (0.1, 0.6, 0.3) + 1/4 (1/3, 1/3, 1/3)
      [[0.1583 0.5333 0.3083]]
    """
    if of not in AVERAGES:
        raise UserError(
            f"an ensemble cannot average {of!r}: give {' or '.join(map(repr, AVERAGES))}."
        )
    if not steps:
        raise UserError("an ensemble has no steps: give at least one.")
    shares = np.ones(len(steps)) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (len(steps),) or not ((shares >= 0).all() and 0 < shares.sum() < np.inf):
        raise UserError(
            f"the weights of an ensemble of {len(steps)} are {weights}: give as many numbers, none "
            "below 0, and one above it."
        )
    return jax.tree_util.Partial(
        _Average(of), tuple(map(as_tree, steps)), jnp.asarray(shares / shares.sum())
    )


@dataclasses.dataclass(frozen=True)
class _Fusion:
    renormalised: bool

    def __call__(self, steps, weight, words, carries):
        (log_probs, of_language), carries = _read(steps, words, carries)
        scores = log_probs + jnp.where(weight > 0, weight.astype(log_probs.dtype) * of_language, 0)
        return jax.nn.log_softmax(scores) if self.renormalised else scores, carries


def fuse(
    step: Step, language_model: Step, weight: float, renormalised: bool = False
) -> jax.tree_util.Partial:
    """Returns the step of a translator fused with a language model, shallow fusion (Gulcehre et al.
    2015, section 4.1):

        score(w) = log p(w) + weight * log p_lm(w).

    Its carry is (the translator's, the language model's). As usual the scores are not normalised: a
    beam search adds them up, and every word costs more than without the language model.

    Args:
      step: the translator's.
      language_model: the language model's step.
      weight: 0 or more.
      renormalised: whether to normalise the scores at each word, as sampling does anyway.

    Raises:
      UserError: the weight is below 0 or not finite.

    Example:
      >>> both = decoding.fuse(step, step, weight=0.5)
      >>> scores, carries = both(first, (carry, carry))
      >>> print(jnp.exp(scores))  # each p times its square root
      [[0.0316 0.4648 0.1643]]
    """
    check_weight(weight)
    steps = as_tree(step), as_tree(language_model)
    return jax.tree_util.Partial(_Fusion(renormalised), steps, jnp.asarray(weight, jnp.float32))


def check_weight(weight: float):
    """Raises UserError for a weight of a language model that is below 0 or not finite."""
    if not 0 <= weight < np.inf:
        raise UserError(f"the language model's weight is {weight}: give 0 or a number above it.")


def check_same_words(lexicons: Sequence[Lexicon], names: Sequence[Any]):
    """Checks that models can be combined."""
    first = lexicons[0]
    for lexicon, name in zip(lexicons[1:], names[1:], strict=True):
        marks = "boundary", "unknown"
        if lexicon.words != first.words:
            other = f"{name} and {names[0]} have different words"
        elif any(getattr(lexicon, mark) != getattr(first, mark) for mark in marks):
            other = f"{name} and {names[0]} have different boundary or unknown words"
        else:
            continue
        raise UserError(f"{other}: combine runs that were trained with one lexicon.")
