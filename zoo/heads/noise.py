"""Noise words: where sampled losses draw their negative examples, and how often to expect each.

A sampled loss draws K words from a distribution q over the vocabulary and corrects each score by
the logarithm of the word's expected count. The draw and the correction must be of one distribution;
here both come from the same probabilities, the draw through an alias table (Walker 1977; Vose
1991), whose cost does not depend on V. Expected counts of K draws of word v:

    all draws kept:                 K q(v)
    repeated draws dropped:         1 - (1 - q(v))^K = -expm1(K log1p(-q(v)))

Dropping repeats after a fixed number of draws, instead of drawing until K words differ, is what
makes the second formula exact.
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.keys import Keys
from zoo.errors import UserError, check_least

NOISE = 0x6E6F6973  # tells the random numbers of noise from all others
# What may draw noise words of its own.
UNITS = ("batch", "lane", "token")


SELDOM = -40.0  # log q of words that no draws repeat
MOST_POWER = 10.0  # of counts, which stay within float64


def check_power(power: float, name: str):
    """UserError for an exponent of counts, called `name`, that is negative or far too large."""
    if not 0 <= power <= MOST_POWER:
        raise UserError(f"{name} is {power}: give a number from 0 to {MOST_POWER:g}.")


class Noise:
    """A distribution of noise words. Subclasses are frozen dataclasses.

    probabilities(counts) -> float64 [V], from how often each word occurs in training
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """q of each word, float64 [V]; every noise writes this itself."""
        raise TypeError(f"{type(self).__name__} has no method probabilities, which its use needs")


@dataclasses.dataclass(frozen=True)
class UniformNoise(Noise):
    """q(v) = 1 / V.

    Example:
      >>> heads.UniformNoise().probabilities(np.array([3, 1])).tolist()
      [0.5, 0.5]
    """

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """float64 [V]."""
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
        """float64 [V]."""
        ranks = np.arange(len(counts), dtype=np.float64)
        found = np.empty(len(counts))
        order = np.argsort(-np.asarray(counts, np.float64), kind="stable")
        found[order] = np.log1p(1 / (ranks + 1)) / np.log1p(len(counts))
        return found


@dataclasses.dataclass(frozen=True)
class UnigramNoise(Noise):
    """q(v) proportional to (n(v) + smoothing)^power, n(v) the occurrences in training.

    Attributes:
      power: 1 is the unigram distribution, 0 the uniform one, 0.75 is Mikolov's (2013).
      smoothing: a word without mass is never drawn, and its correction would be infinite.

    Example:
      >>> heads.UnigramNoise(smoothing=0.0).probabilities(np.array([3, 1])).tolist()
      [0.75, 0.25]
    """

    power: float = 1.0
    smoothing: float = 1.0

    def __post_init__(self):
        check_least(self, "model.head.noise", smoothing=0)
        check_power(self.power, "model.head.noise.power")

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """float64 [V]; UserError if a word would have no mass."""
        counts = np.asarray(counts, np.float64) + self.smoothing
        if not counts.all():
            raise UserError(
                "the unigram noise gives no mass to a word without occurrences in training: set "
                "model.head.noise.smoothing above 0."
            )
        mass = counts**self.power
        return mass / mass.sum()


# ---------------------------------------------------------------- alias tables


def alias_table(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(threshold float64 [V], alias int32 [V]) of a distribution [V].

    Cell v of V equal cells gives word v with probability threshold[v] and alias[v] otherwise, so
    that q(v) = (threshold[v] + sum_{u: alias[u] = v} (1 - threshold[u])) / V.
    """
    scaled = np.asarray(probabilities, np.float64) * len(probabilities)
    threshold, alias = np.ones(len(scaled)), np.arange(len(scaled), dtype=np.int32)
    small = np.flatnonzero(scaled < 1).tolist()
    large = np.flatnonzero(scaled >= 1).tolist()
    left = scaled.tolist()  # plain numbers: ten times faster than items of an array
    while small and large:
        poor, rich = small.pop(), large[-1]
        threshold[poor], alias[poor] = left[poor], rich
        left[rich] -= 1 - left[poor]
        if left[rich] < 1:
            small.append(large.pop())
    # What remains is 1 but for rounding, and stays so.
    return threshold, alias


def tables(probabilities: np.ndarray) -> dict[str, jax.Array]:
    """{"log_q" float32 [V] nats, "threshold" float32 [V], "alias" int32 [V]}."""
    threshold, alias = alias_table(probabilities)
    return {
        "log_q": jnp.asarray(np.log(probabilities), jnp.float32),
        "threshold": jnp.asarray(threshold, jnp.float32),
        "alias": jnp.asarray(alias),
    }


def draw(noise_tables, key, shape) -> jax.Array:
    """Words drawn from q, int32 of the shape."""
    of_cell, of_threshold = jax.random.split(key)
    cells = jax.random.randint(of_cell, shape, 0, noise_tables["alias"].shape[0])
    stays = jax.random.uniform(of_threshold, shape) < noise_tables["threshold"][cells]
    return jnp.where(stays, cells, noise_tables["alias"][cells])


# ---------------------------------------------------------------- samples


class Sample(NamedTuple):
    """Noise words for a batch.

    words: int32, [K] for the batch, [B, K] for each lane, [..., K] for each token. kept: bool of
    the same shape, False where a repeated draw was dropped. log_expected: of the same shape, log of
    the expected count.
    """

    words: jax.Array
    kept: jax.Array
    log_expected: jax.Array


def log_expected_count(log_q, draws: int, distinct: bool):
    """log of the expected count of a word in `draws` draws, repeats kept or dropped (distinct)."""
    kept = log_q + jnp.log(draws).astype(log_q.dtype)
    if not distinct:
        return kept
    # A word that is hardly ever drawn is not drawn twice; its q may be below any float.
    seldom = log_q < SELDOM
    log_q = jnp.where(seldom, SELDOM, log_q)
    return jnp.where(seldom, kept, jnp.log(-jnp.expm1(draws * jnp.log1p(-jnp.exp(log_q)))))


def per_unit(function, key, shape, draws: int, per: str):
    """function(key, shape), a pytree of arrays of that shape, for tokens of the given shape.

    [draws] for the batch, [B, draws] for each lane, [..., draws] for each token; see `sample`.
    """
    of_lane = shape[1:] if per == "token" else ()
    if not isinstance(key, Keys):
        return function(key, (draws,) if per == "batch" else (*shape[:1], *of_lane, draws))
    # Another stream than dropout's, which uses the same keys; those of the rows are the batch's
    # with a small number folded in.
    if per == "batch":
        return function(jax.random.fold_in(key.batch, NOISE), (draws,))
    of_rows = jax.vmap(lambda row: jax.random.fold_in(row, NOISE))(key.rows)
    return jax.vmap(lambda row: function(row, (*of_lane, draws)))(of_rows)


def sample(noise_tables, key, shape, draws: int, *, per: str, distinct: bool) -> Sample:
    """K = `draws` noise words for tokens of the given shape.

    Args:
      key: one key, or `zoo.arrays.keys.Keys` for tokens [B, T]: words for the batch then come from
        its `batch` key, words for each lane or token from the keys of the rows.
      per: one of UNITS, that which draws words of its own; a lane is a row of the first axis.
    """
    words = per_unit(lambda key, shape: draw(noise_tables, key, shape), key, shape, draws, per)
    kept = jnp.ones(words.shape, bool)
    if distinct:
        words = jnp.sort(words, axis=-1)
        kept = kept.at[..., 1:].set(words[..., 1:] != words[..., :-1])
    log_expected = log_expected_count(noise_tables["log_q"][words], draws, distinct)
    return Sample(words, kept, log_expected)
