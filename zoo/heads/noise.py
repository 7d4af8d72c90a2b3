"""Distributions of noise words, from which `zoo.losses.noise_sampling` draws."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.component_registry import Component
from zoo.errors import UserError, check_least, field_name
from zoo.lexicon.spelling import BEGIN, END, PADDING, Spelling
from zoo.losses import value_checks
from zoo.losses.noise_sampling import alias_table

MOST_POWER = 10.0  # the largest exponent of counts: their powers stay within float64


def check_power(noise):
    if not 0 <= noise.power <= MOST_POWER:
        field = field_name(noise, "power")
        raise UserError(f"{field} is {noise.power}: give a number from 0 to {MOST_POWER:g}.")


class Noise(Component):
    """Base class of distributions of noise words. Subclasses are frozen dataclasses."""

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """Computes q of each word; every subclass overrides it.

        Args:
          counts: occurrences of each word in training, [V].

        Returns:
          float64 [V], which sum to one.
        """
        raise self._unwritten("probabilities")


@dataclasses.dataclass(frozen=True)
class UniformNoise(Noise):
    """q(v) = 1 / V.

    Example:
      >>> heads.UniformNoise().probabilities(np.array([3, 1])).tolist()
      [0.5, 0.5]
    """

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        return np.full(len(counts), 1 / len(counts))


@dataclasses.dataclass(frozen=True)
class LogUniformNoise(Noise):
    """q(r) = log((r + 2) / (r + 1)) / log(V + 1) for the word of frequency rank r = 0, 1, ...

    Zipf's law without counts; words of equal count rank in the order of the lexicon.

    Example:
      >>> heads.LogUniformNoise().probabilities(np.array([3, 1])).round(2).tolist()
      [0.63, 0.37]
    """

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        ranks = np.arange(len(counts), dtype=np.float64)
        q = np.empty(len(counts))
        order = np.argsort(-np.asarray(counts, np.float64), kind="stable")
        q[order] = np.log1p(1 / (ranks + 1)) / np.log1p(len(counts))
        return q


@dataclasses.dataclass(frozen=True)
class UnigramNoise(Noise):
    """q(v) proportional to (n(v) + smoothing)^power, n(v) the occurrences in training.

    Attributes:
      power: 1 for the unigram distribution, 0 for the uniform distribution; Mikolov et al. (2013)
        use 0.75.
      smoothing: occurrences added to each word, at least 0. A word without mass would never be
        drawn, and its correction would be infinite.

    Example:
      >>> heads.UnigramNoise(smoothing=0.0).probabilities(np.array([3, 1])).tolist()
      [0.75, 0.25]
    """

    power: float = 1.0
    smoothing: float = 1.0

    def __post_init__(self):
        check_least(self, smoothing=0)
        check_power(self)

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        value_checks.check_least(0, "occurrences, at least 0", counts=counts)
        counts = np.asarray(counts, np.float64) + self.smoothing
        if not counts.all():
            raise UserError(
                "the unigram noise gives no mass to a word without occurrences in training: set "
                "smoothing of UnigramNoise above 0."
            )
        mass = counts**self.power
        return mass / mass.sum()


# ---- noise words spelled by a letter model, so that unseen words are noise words, too
# Labeau and Allauzen, "Opening the vocabulary of neural language models" (2017), section 4.4, find
# that their models of letters learn little of unknown words because "the negative examples used
# with noise-contrastive estimation come from a closed vocabulary". Here a noise word is any
# sequence of letters c_1 ... c_m that an n-gram model of letters draws, ending with the mark of the
# end (zoo.lexicon.spelling):
#
#     q(word) = prod_j p(c_j | the order - 1 letters before it, the mark of the beginning too)
#
#     p(c | context) = (n(context c) + s p(c | shorter context)) / (n(context) + s)
#
# n are counts in the known words, each as often as it occurs in training (plus one, so that all
# words count). The recursion ends at the uniform distribution over all letters; it is interpolation
# with a Dirichlet prior of the weight s (MacKay and Peto 1995). Every sequence has a mass.
# Sequences of `longest` letters need no end, so that the masses of all sequences sum to one.
#
# Contexts that occur in no known word are not kept: p is then the distribution after the context's
# longest known suffix. So the model is an automaton of C states, the known contexts, with tables
# [C, letters].


@dataclasses.dataclass(frozen=True)
class LetterNoise(Noise):
    """Noise words spelled by an n-gram model of letters, for heads that read letters.

    Attributes:
      order: n of the n-grams.
      smoothing: s, in occurrences.
      power: a word with n occurrences counts (n + 1)^power; with 0, each word counts once.

    Example:
      >>> head = heads.CNNSoftmax(sampled=heads.NCE(noise=heads.LetterNoise(), samples=2))
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.loss(params, tables, hidden, targets, key=key).shape  # against any spellings
      (2,)
    """

    order: int = 3
    smoothing: float = 1.0
    power: float = 1.0

    def __post_init__(self):
        check_least(self, order=1)
        check_power(self)
        if not self.smoothing > 0:
            raise UserError(
                f"smoothing of LetterNoise is {self.smoothing}: give a number above 0, without "
                "which most spellings would have no mass."
            )

    def probabilities(self, counts):
        """Raises UserError: the model draws spellings instead of words of a lexicon."""
        raise UserError(
            "the noise words of LetterNoise are spellings, which only a head that reads letters "
            "can score: give heads.CNNSoftmax(sampled=NCE(noise=LetterNoise())), or another noise."
        )

    def tables(self, lexicon, spelling: Spelling) -> dict[str, jax.Array]:
        """Computes the automaton and log q of the lexicon's words.

        Returns:
          {"log_p" float32, "threshold" float32, "alias" int32, "next" int32, [C, A'] each: log p of
          the letters from END on, alias tables to draw from p, and the state after each letter;
          state 0 is the start of a word. "letters" int32 [V, L], "sizes" int32 [V]: the words'
          spellings, see Spelling.sequence_tables. "log_q" float32 [V], nats}.
        """
        words = spelling.sequence_tables(lexicon)
        weights = (np.asarray(lexicon.counts, np.float64) + 1) ** self.power
        p, transitions = _automaton(words, weights, spelling.letter_count(lexicon), self)
        threshold, alias = zip(*map(alias_table, p), strict=True)
        tables = {
            "log_p": jnp.asarray(np.log(p), jnp.float32),
            "threshold": jnp.asarray(np.stack(threshold), jnp.float32),
            "alias": jnp.asarray(np.stack(alias)),
            "next": jnp.asarray(transitions, jnp.int32),
            "letters": jnp.asarray(words["letters"]),
            "sizes": jnp.asarray(words["lengths"]),
        }
        return {**tables, "log_q": log_prob(tables, tables["letters"], tables["sizes"])}


def _automaton(words, weights, letter_count, noise):
    """Returns (p of the letters from END on, float64 [C, A'], state after each, int64 [C, A']); a
    context is coded as a number in base `letter_count`, its last letter the last digit."""
    letters, longest = words["letters"].astype(np.int64), noise.order - 1
    if letter_count**noise.order > np.iinfo(np.int64).max:
        raise UserError(
            f"order of LetterNoise is {noise.order}, too high for {letter_count:,} "
            "letters: lower it."
        )
    paths = np.concatenate([np.full_like(letters[:, :1], BEGIN), letters], axis=1)
    is_letter = np.arange(letters.shape[1]) < words["lengths"][:, None]
    outputs = letter_count - END
    # Contexts of each size, and the state of the first context of each size.
    contexts_by_size: list = []
    starts = [0]
    p = np.full((1, outputs), 1 / outputs)
    p_by_size = []
    for size in range(noise.order):
        chosen = is_letter & (np.arange(letters.shape[1]) + 1 >= size)
        row, position = np.nonzero(chosen)
        codes = np.zeros(len(row), np.int64)
        for back in range(size, 0, -1):
            codes = codes * letter_count + paths[row, position + 1 - back]
        contexts, context_indices = np.unique(codes, return_inverse=True)
        counts = np.zeros((len(contexts), outputs))
        np.add.at(counts, (context_indices.ravel(), letters[row, position] - END), weights[row])
        if size:
            p = p[np.searchsorted(contexts_by_size[-1], contexts % letter_count ** (size - 1))]
        total = counts.sum(axis=1, keepdims=True) + noise.smoothing
        p = (counts + noise.smoothing * p) / total
        contexts_by_size.append(contexts)
        p_by_size.append(p)
        starts.append(starts[-1] + len(contexts))

    transitions = np.zeros((starts[-1], outputs), np.int64)
    for size, contexts in enumerate(contexts_by_size):
        codes = contexts[:, None] * letter_count + np.arange(END, letter_count)
        next_states = transitions[starts[size] : starts[size + 1]]
        for shorter in range(1, min(size + 1, longest) + 1):  # the longest stays
            suffix_contexts = contexts_by_size[shorter]
            if not len(suffix_contexts):
                break  # no word is so long
            suffixes = codes % letter_count**shorter
            index = np.searchsorted(suffix_contexts, suffixes).clip(max=len(suffix_contexts) - 1)
            is_context = suffix_contexts[index] == suffixes
            next_states[is_context] = starts[shorter] + index[is_context]
    # A spelling starts after BEGIN: that context is swapped with the first, which is empty.
    start = starts[1] + int(np.searchsorted(contexts_by_size[1], BEGIN)) if longest else 0
    order = np.arange(starts[-1])
    order[[0, start]] = start, 0
    return np.concatenate(p_by_size)[order], order[transitions[order]]


def log_prob(tables, letters, sizes):
    """Computes log q of spellings, exactly: q sums to one over all spellings. Gives [n], nats."""

    def step(carry, position):
        total, state = carry
        letter, is_letter = position
        column = jnp.maximum(letter - END, 0)
        total += jnp.where(is_letter, tables["log_p"][state, column], 0)
        return (total, tables["next"][state, column]), None

    is_letter = jnp.arange(letters.shape[1])[:, None] < sizes[None]
    initial_carry = jnp.zeros(len(sizes), tables["log_p"].dtype), jnp.zeros(len(sizes), jnp.int32)
    return jax.lax.scan(step, initial_carry, (letters.T, is_letter))[0][0]


class Spellings(NamedTuple):
    """Random spellings, with their probabilities."""

    letters: jax.Array  # int32 [..., longest], END unless there are `longest`, and PADDING
    sizes: jax.Array  # the number of letters, END included, int32 [...]
    log_q: jax.Array  # log q of each spelling, float32 [...], nats


def draw(tables, key, shape, longest: int) -> Spellings:
    """Draws spellings from q, letter by letter until all have ended."""
    count, outputs = math.prod(shape), tables["log_p"].shape[1]

    def is_unfinished(carry):
        position, *_, ended = carry
        return (position < longest) & ~ended.all()

    def step(carry):
        position, letters, sizes, log_q, state, ended = carry
        cell_key, threshold_key = jax.random.split(jax.random.fold_in(key, position))
        cell = jax.random.randint(cell_key, (count,), 0, outputs, jnp.int32)
        keeps_cell = jax.random.uniform(threshold_key, (count,)) < tables["threshold"][state, cell]
        columns = jnp.where(keeps_cell, cell, tables["alias"][state, cell])
        letters = letters.at[:, position].set(jnp.where(ended, PADDING, columns + END))
        log_q += jnp.where(ended, 0, tables["log_p"][state, columns])
        sizes += ~ended
        state = tables["next"][state, columns]
        return position + 1, letters, sizes, log_q, state, ended | (columns == 0)

    zeros = jnp.zeros(count, jnp.int32)
    letters = jnp.full((count, longest), PADDING, jnp.int32)
    log_q = jnp.zeros(count, tables["log_p"].dtype)
    initial_carry = 0, letters, zeros, log_q, zeros, jnp.zeros(count, bool)
    _, letters, sizes, log_q, *_ = jax.lax.while_loop(is_unfinished, step, initial_carry)
    return Spellings(letters.reshape(*shape, longest), sizes.reshape(shape), log_q.reshape(shape))
