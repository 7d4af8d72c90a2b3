"""Sampling of words one after the other from a step function (see `zoo.decoding.steps`)."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.decoding.beam import Hypotheses, check_lengths, length_limits
from zoo.decoding.steps import Step, as_tree, check_boundary
from zoo.errors import UserError, check_seed

# Bounds of temperatures other than 0: beyond them float32 scores become infinite, or all equal.
_LOWEST, _HIGHEST = 1e-30, 1e30


def sample(
    step: Step,
    words: jax.Array | np.ndarray,
    carry: Any,
    key: jax.Array,
    length: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    nucleus: float | None = None,
    boundary: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Draws w_t from q(. | w_<t), proportional to p^(1 / temperature), until boundary or `length`.

    With `top_k` and `nucleus` q is 0 outside some words and renormalised over them: first the k
    most probable ones are kept; then, of these, renormalised, the fewest most probable ones whose
    probabilities add up to at least `nucleus` (Holtzman et al. 2020, section 3.1). Of equally
    probable words the one with the lower id comes first.

    Args:
      step: see `zoo.decoding.steps`.
      words: int32 [B], the word before the first draw of each row.
      carry: the state before it.
      key: of `jax.random`.
      length: greatest number of words drawn.
      temperature: 1 samples the model itself; 0 takes the most probable word, the first of equals.
      top_k: at least 1; None, or the size of the vocabulary, keeps all.
      nucleus: above 0 and at most 1; None or 1 keeps all.
      boundary: the word that ends a row, or None.

    Returns:
      (words int32 [B, length], log_prob [B, length]): the drawn words and their log-probability
      under the model itself, whatever the temperature and the words kept, nats. After a boundary a
      row has further boundaries, of log-probability 0.

    Raises:
      UserError: the temperature is below 0, or not finite; top_k or nucleus is out of range.

    Example:
      >>> words, log_prob = decoding.sample(step, first, carry, jax.random.key(0), 4, temperature=0)
      >>> words.tolist()
      [[1, 0, 1, 0]]
      >>> print(jnp.exp(log_prob[0]))
      [0.6 0.5 0.6 0.5]
    """
    check_options(temperature, top_k, nucleus)
    greedy = temperature == 0
    return _sample(
        as_tree(step),
        jnp.asarray(words, jnp.int32),
        carry,
        key,
        1.0 if greedy else temperature,
        None if nucleus == 1 else nucleus,
        length=length,
        greedy=greedy,
        top_k=top_k,
        boundary=boundary,
    )


def draw(
    log_probs: jax.Array,
    key: jax.Array,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    nucleus: float | None = None,
) -> jax.Array:
    """Draws a word from each q, proportional to p^(1 / temperature) over the kept words.

    Args:
      log_probs: log p, [..., V], nats, as a head's `log_probs` returns.
      key: a key of `jax.random`.
      temperature: 1 for p itself; 0 for the most probable word, the first of equals.
      top_k: at least 1, number of most probable words kept; None keeps all.
      nucleus: above 0 and at most 1, probability of the kept words; None or 1 keeps all.

    Returns:
      int32 [...].

    Raises:
      UserError: the temperature is below 0, or not finite; top_k or nucleus is out of range.

    Example:
      >>> decoding.draw(log_probs, jax.random.key(0), nucleus=0.5).tolist()
      [1, 0, 0]

    Source: nucleus sampling, Holtzman et al. (2020), section 3.1.
    """
    check_options(temperature, top_k, nucleus)
    if temperature == 0:
        return argmax(log_probs)
    rows = log_probs.reshape(-1, log_probs.shape[-1]) / temperature
    if not len(rows):
        return jnp.zeros(log_probs.shape[:-1], jnp.int32)
    samples = _draw(key, rows, top_k, None if nucleus == 1 else nucleus)
    return samples.reshape(log_probs.shape[:-1])


def check_options(temperature: float, top_k: int | None, nucleus: float | None):
    if temperature != 0 and not _LOWEST <= temperature <= _HIGHEST:
        raise UserError(
            f"the temperature is {temperature}: give 0 (greedy), or a number from {_LOWEST:g} to "
            f"{_HIGHEST:g}."
        )
    if top_k is not None and top_k < 1:
        raise UserError(f"top-k is {top_k}: give the number of words to keep, 1 or more.")
    if nucleus is not None and not 0 < nucleus <= 1:
        raise UserError(f"the nucleus is {nucleus}: give a probability above 0 and at most 1.")


def argmax(array: jax.Array) -> jax.Array:
    """Finds the column of the largest number of each row, of equal ones the first.

    The result is equal to `jnp.argmax`. On CPUs, where XLA compares one pair of number and column
    at a time, the function is faster: it finds the largest number, then its first column.
    """

    def by_maximum(array):
        # Behind a barrier: each of the two reductions would compute the array once more.
        array = jax.lax.optimization_barrier(array)
        below = array < array.max(axis=-1, keepdims=True)
        columns = jax.lax.broadcasted_iota(jnp.int32, array.shape, array.ndim - 1)
        return jnp.where(below, array.shape[-1], columns).min(axis=-1)

    def by_pairs(array):
        return jnp.argmax(array, axis=-1).astype(jnp.int32)

    return jax.lax.platform_dependent(array, cpu=by_maximum, default=by_pairs)


def _draw(key, scores, top_k, nucleus):
    """Draws words [B] from softmax(scores [B, V]), among the words that are kept."""
    size = scores.shape[-1]
    if nucleus is None and (top_k is None or top_k >= size):
        return _categorical(key, scores)
    scores, words = jax.lax.top_k(scores, size if top_k is None else min(top_k, size))
    if nucleus is not None:
        probs = jax.nn.softmax(scores)
        before = jnp.cumsum(probs, axis=-1) - probs
        # The first word is always kept, whatever the rounding.
        beyond = (before >= nucleus).at[:, 0].set(False)
        scores = jnp.where(beyond, -jnp.inf, scores)
    columns = _categorical(key, scores)
    return jnp.take_along_axis(words, columns[:, None], axis=-1)[:, 0]


def _categorical(key, scores):
    """Draws words [B] from softmax(scores [B, V]) by two uniform numbers a row.

    First one of about sqrt(V) runs of words is drawn by its sum, then a word of the run. Gumbel
    noise (`jax.random.categorical`) would take V random numbers a row, which cost as much time as a
    small model.
    """
    rows, size = scores.shape
    length = math.isqrt(size - 1) + 1
    weights = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = jnp.pad(weights, ((0, 0), (0, -size % length))).reshape(rows, -1, length)
    run_uniform, word_uniform = jax.random.uniform(key, (2, rows), scores.dtype)
    run = _invert_cumulative(run_uniform, weights.sum(axis=-1))
    return run * length + _invert_cumulative(word_uniform, weights[jnp.arange(rows), run])


def _invert_cumulative(u, weights):
    """Returns the first column of weights [B, n] up to which their share of all exceeds u [B]."""
    sums = jnp.cumsum(weights, axis=-1)
    # Below the whole sum despite rounding, so that a column of weight 0 is never returned.
    share = jnp.minimum(u * sums[:, -1], jnp.nextafter(sums[:, -1], 0))
    return (sums <= share[:, None]).sum(axis=-1, dtype=jnp.int32)


@functools.partial(jax.jit, static_argnames=("length", "greedy", "top_k", "boundary"))
def _sample(step, words, carry, key, temperature, nucleus, *, length, greedy, top_k, boundary):
    """Samples as `sample`, after its checks; `greedy` takes the most probable words instead."""

    def draw(state, time):
        last_words, carry, finished = state
        log_probs, carry = step(last_words, carry)
        if boundary is not None:
            check_boundary(boundary, log_probs)
        if greedy:
            samples = argmax(log_probs)
        else:
            step_key = jax.random.fold_in(key, time)
            samples = _draw(step_key, log_probs / temperature, top_k, nucleus)
        log_prob = jnp.take_along_axis(log_probs, samples[:, None], axis=-1)[:, 0]
        if boundary is not None:
            samples = jnp.where(finished, boundary, samples)
            log_prob = jnp.where(finished, 0, log_prob)
            finished |= samples == boundary
        return (samples, carry, finished), (samples, log_prob)

    state = (words, carry, jnp.zeros(words.shape, bool))
    _, (samples, log_prob) = jax.lax.scan(draw, state, jnp.arange(length))
    return samples.T, log_prob.T


@jax.jit
def _feed(step, words, carry):
    def read(carry, column):
        return step(column, carry)[1], None

    return jax.lax.scan(read, carry, words.T)[0]


def feed(step: Step, words: jax.Array | np.ndarray, carry: Any) -> Any:
    """Reads words and returns the carry after them.

    Args:
      step: see `zoo.decoding.steps`.
      words: int32 [B, T], T perhaps 0.
      carry: the state before them.

    Example:
      >>> def count(words, carry):  # a step whose carry counts words
      ...     return log_probs[words], carry + 1
      >>> decoding.feed(count, jnp.array([[1, 2, 1]]), jnp.zeros(1, jnp.int32)).tolist()
      [3]
    """
    return _feed(as_tree(step), jnp.asarray(words, jnp.int32), carry)


def force(
    step: Step, words: jax.Array | np.ndarray, carry: Any, targets: jax.Array | np.ndarray
) -> jax.Array:
    """Computes log p(target_t | target_<t) of given sequences: forced decoding, as for re-ranking.

    Args:
      step: see `zoo.decoding.steps`.
      words: int32 [B], the word before the first target.
      carry: the state before it, every leaf [B, ...].
      targets: int32 [B, T], or [B, N, T], the sequences of an n-best list for each.

    Returns:
      float [the shape of the targets], nats; also at padding after a sequence, so sum with a mask.

    Raises:
      ValueError: targets do not have a row for each word.

    Example:
      >>> forced = decoding.force(step, first, carry, jnp.array([[1, 2, 0]]))
      >>> print(jnp.exp(forced))
      [[0.6 0.3 0.8]]
    """
    targets = jnp.asarray(targets, jnp.int32)
    if targets.shape[:1] != np.shape(words):
        raise ValueError(
            f"targets have the shape {targets.shape}, and words {np.shape(words)}: give targets "
            "[B, T] or [B, N, T] after words [B]"
        )
    return _force(as_tree(step), jnp.asarray(words, jnp.int32), carry, targets)


@jax.jit
def _force(step, words, carry, targets):
    rows = targets.reshape(-1, targets.shape[-1])
    count = len(rows) // len(words)
    words, carry = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), (words, carry))

    def read(state, target):
        log_probs, carry = step(*state)
        log_prob = jnp.take_along_axis(log_probs, target[:, None], axis=-1)[:, 0]
        return (target, carry), log_prob

    _, log_probs = jax.lax.scan(read, (words, carry), rows.T)
    return log_probs.T.reshape(targets.shape)


# ---- sampling for batches of sentences, with the interface of a beam search, for translators


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Draws hypotheses w_1 ... w_n, each word from q(. | w_<j) ~ p(. | w_<j)^(1 / temperature).

    `top_k` and `nucleus` keep some words and renormalise, as in `decoding.sample`. w_n is the
    boundary, the only one, or n = longest. Scores are log p of the hypothesis under the model
    itself, nats, whatever the temperature and the words kept.

    Attributes:
      nbest: number of hypotheses of each sentence, drawn independently, in the order drawn.
      temperature: 1 samples the model itself; 0 takes the most probable word.
      top_k: at least 1; None keeps all words.
      nucleus: above 0 and at most 1; None or 1 keeps all words.
      seed: of all draws.
      shortest: least number of tokens of a hypothesis, with the boundary.
      longest: greatest number of tokens. A hypothesis that reaches it without the boundary is not
        `complete`.

    Raises:
      UserError: a number is out of range; or nbest is above 1 at temperature 0, where all
        hypotheses would be the same.

    Example:
      >>> sampling = decoding.Sampling(nbest=2, top_k=1, longest=4)
      >>> hypotheses = sampling.search(step, first, carry, boundary=0)
      >>> hypotheses.words[0].tolist()
      [[1, 0, 0, 0], [1, 0, 0, 0]]

    Source: nucleus sampling, Holtzman et al. (2020), section 3.1.
    """

    nbest: int = 1
    temperature: float = 1.0
    top_k: int | None = None
    nucleus: float | None = None
    seed: int = 0
    shortest: int = 1
    longest: int = 200

    def __post_init__(self):
        check_options(self.temperature, self.top_k, self.nucleus)
        check_seed(self.seed, "the seed of the draws")
        if self.nbest < 1:
            raise UserError(f"{self.nbest} hypotheses cannot be drawn: give 1 or more.")
        if self.temperature == 0 and self.nbest > 1:
            raise UserError(
                f"at temperature 0 all {self.nbest} hypotheses would be the same: give a "
                "temperature above 0, or ask for one."
            )
        check_lengths(self.shortest, self.longest)

    def search(
        self,
        step: Step,
        words: jax.Array | np.ndarray,
        carry: Any,
        *,
        boundary: int,
        longest: jax.Array | np.ndarray | None = None,
        numbers: jax.Array | np.ndarray | None = None,
    ) -> Hypotheses:
        """Draws hypotheses of each sentence, in the order drawn; see `BeamSearch.search`.

        Args:
          numbers: int [B], number of each sentence, 0 ... B-1 by default: the draws of a sentence
            depend on its number and the seed, and not on the other sentences.

        Returns:
          As a beam search returns; `missed` is infinite, for hypotheses that were not drawn have no
          bound. A draw in which only the boundary is possible before `shortest` is not a
          hypothesis: its length is 0.
        """
        words = jnp.asarray(words, jnp.int32)
        limits = length_limits(longest, len(words), self)
        numbers = jnp.arange(len(words)) if numbers is None else jnp.asarray(numbers)
        settings = dataclasses.replace(self, seed=0)  # one compiled program for all seeds
        key = jax.random.key(self.seed)
        return _search(
            as_tree(step), words, carry, limits, key, numbers, settings=settings, boundary=boundary
        )


@functools.partial(jax.jit, static_argnames=("settings", "boundary"))
def _search(step, words, carry, limits, key, numbers, *, settings, boundary):
    """Samples as `Sampling.search`; limits: greatest lengths, int32 [B], 0 for no hypotheses."""
    sentences, nbest = len(words), settings.nbest
    words, carry, limits = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, nbest, axis=0), (words, carry, limits)
    )
    sentence_keys = jax.vmap(functools.partial(jax.random.fold_in, key))(numbers)
    keys = jax.vmap(functools.partial(jax.random.split, num=nbest))(sentence_keys).reshape(-1)

    def draw_word(row, key, time):
        """Returns (a word of q [V], not the boundary too early; whether any word is possible)."""
        early = (time + 1 < settings.shortest) & (jnp.arange(len(row)) == boundary)
        row = jnp.where(early, -jnp.inf, row)
        word = draw(
            row,
            jax.random.fold_in(key, time),
            temperature=settings.temperature,
            top_k=settings.top_k,
            nucleus=settings.nucleus,
        )
        return word, row.max() > -jnp.inf

    def is_unfinished(state):
        return (state[0] < settings.longest) & state[5].any()

    def advance(state):
        time, last, carry, samples, log_probs, is_open, lengths = state
        next_log_probs, carry = step(last, carry)
        check_boundary(boundary, next_log_probs)
        word, is_possible = jax.vmap(draw_word, (0, 0, None))(next_log_probs, keys, time)
        log_prob = jnp.take_along_axis(next_log_probs, word[:, None], axis=-1)[:, 0]
        word = jnp.where(is_open, word, boundary)
        samples = samples.at[:, time].set(word)
        log_probs = log_probs.at[:, time].set(jnp.where(is_open, log_prob, 0))
        lengths = jnp.where(is_open & ~is_possible, 0, lengths + is_open)
        is_open &= is_possible & (word != boundary) & (time + 1 < limits)
        return time + 1, word, carry, samples, log_probs, is_open, lengths

    rows = len(words)
    output = jax.eval_shape(step, words, carry)[0]
    state = (
        jnp.int32(0),
        words,
        carry,
        jnp.full((rows, settings.longest), boundary, jnp.int32),
        jnp.zeros((rows, settings.longest), output.dtype),
        limits > 0,
        jnp.zeros(rows, jnp.int32),
    )
    *_, samples, log_probs, _, lengths = jax.lax.while_loop(is_unfinished, advance, state)
    ends = jnp.take_along_axis(samples, jnp.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
    log_prob = jnp.where(lengths > 0, log_probs.sum(axis=1), -jnp.inf)
    draws = Hypotheses(
        words=samples,
        log_probs=log_probs,
        log_prob=log_prob,
        score=log_prob,
        lengths=lengths,
        complete=(ends == boundary) & (lengths > 0),
        missed=jnp.full(sentences * nbest, jnp.inf),
    )
    draws = jax.tree.map(lambda leaf: leaf.reshape(sentences, nbest, *leaf.shape[1:]), draws)
    return draws._replace(missed=draws.missed[:, 0])
