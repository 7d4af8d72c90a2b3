"""Sampling for batches of sentences, with the interface of a beam search, for translators."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.decoding.beam import Hypotheses, check_lengths, length_limits
from zoo.decoding.sampling import check, draw
from zoo.decoding.steps import Step, as_tree, check_boundary
from zoo.errors import UserError, check_seed


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
      >>> found = sampling.search(step, first, carry, boundary=0)
      >>> found.words[0].tolist()
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
        check(self.temperature, self.top_k, self.nucleus)
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
        """Draws hypotheses of each sentence, in the order drawn.

        Args:
          step: see `zoo.decoding.steps`.
          words: int32 [B], the word before the first of each sentence.
          carry: the state before it, every leaf [B, ...].
          boundary: the word that ends a hypothesis.
          longest: int [B], the greatest length of each sentence, from `shortest` to the field
            `longest`, the default. Nothing is drawn for a sentence with 0.
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
    sentences, each = len(words), settings.nbest
    words, carry, limits = jax.tree.map(
        lambda leaf: jnp.repeat(leaf, each, axis=0), (words, carry, limits)
    )
    of_sentence = jax.vmap(functools.partial(jax.random.fold_in, key))(numbers)
    keys = jax.vmap(lambda one: jax.random.split(one, each))(of_sentence).reshape(-1)

    def drawn(row, key, time):
        """Returns (a word of q [V], not the boundary before its time; whether any word is
        possible)."""
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

    def more(state):
        time, open_ = state[0], state[5]
        return (time < settings.longest) & open_.any()

    def grow(state):
        time, last, carry, said, log_probs, open_, lengths = state
        of_words, carry = step(last, carry)
        check_boundary(boundary, of_words)
        word, possible = jax.vmap(drawn, (0, 0, None))(of_words, keys, time)
        log_prob = jnp.take_along_axis(of_words, word[:, None], axis=-1)[:, 0]
        word = jnp.where(open_, word, boundary)
        said = said.at[:, time].set(word)
        log_probs = log_probs.at[:, time].set(jnp.where(open_, log_prob, 0))
        lengths = jnp.where(open_ & ~possible, 0, lengths + open_)
        open_ &= possible & (word != boundary) & (time + 1 < limits)
        return time + 1, word, carry, said, log_probs, open_, lengths

    rows = len(words)
    like = jax.eval_shape(step, words, carry)[0]
    state = (
        jnp.int32(0),
        words,
        carry,
        jnp.full((rows, settings.longest), boundary, jnp.int32),
        jnp.zeros((rows, settings.longest), like.dtype),
        limits > 0,
        jnp.zeros(rows, jnp.int32),
    )
    *_, said, log_probs, _, lengths = jax.lax.while_loop(more, grow, state)
    ends = jnp.take_along_axis(said, jnp.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
    log_prob = jnp.where(lengths > 0, log_probs.sum(axis=1), -jnp.inf)
    found = Hypotheses(
        words=said,
        log_probs=log_probs,
        log_prob=log_prob,
        score=log_prob,
        lengths=lengths,
        complete=(ends == boundary) & (lengths > 0),
        missed=jnp.full(sentences * each, jnp.inf),
    )
    found = jax.tree.map(lambda leaf: leaf.reshape(sentences, each, *leaf.shape[1:]), found)
    return found._replace(missed=found.missed[:, 0])
