"""Noise words, the negative examples of sampled losses, and their expected counts.

A sampled loss draws K words from a distribution q over the vocabulary and corrects each score by
the logarithm of the word's expected count. Draw and correction must use the same distribution: here
both come from the same probabilities. The draw uses an alias table (Walker 1977; Vose 1991), whose
cost does not depend on V. Expected counts of word v in K draws:

    all draws kept:                 K q(v)
    repeated draws dropped:         1 - (1 - q(v))^K = -expm1(K log1p(-q(v)))

The second formula is exact because repeats are dropped after a fixed number of draws, instead of
drawing until K words differ.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.random_keys import Keys, fold_in_rows
from zoo.base.arrays.types import Array, Shape, Tables
from zoo.losses import value_checks

NOISE = 0x6E6F6973  # folded into keys, so that noise has random numbers of its own
# Units that may have noise words of their own.
UNITS = ("batch", "row", "token")
RARE = -40.0  # log q below which repeated draws are neglected


def alias_table(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes Walker's alias table (threshold, alias), to draw a word in constant time.

    Each of V equally likely cells v gives word v with probability threshold[v], and word alias[v]
    otherwise, so that q(v) = (threshold[v] + sum_{u: alias[u] = v} (1 - threshold[u])) / V.

    Args:
      probabilities: q, [V], at least 0, with the sum 1.

    Returns:
      (threshold float64 [V], alias int32 [V]).

    Raises:
      ValueError: probabilities are not [V], below 0, or do not sum to 1.

    Example:
      >>> threshold, alias = losses.alias_table(np.array([0.75, 0.25]))
      >>> print(threshold, alias)  # the cell of word 1 is word 0 half of the time
      [1.  0.5] [0 0]

    Source: Walker (1977); Vose (1991).
    """
    value_checks.check_shapes(probabilities=(probabilities, "V"))
    value_checks.check_least(0, "probabilities", probabilities=probabilities)
    value_checks.check_sums(
        "the probabilities", probabilities, "divide them, or counts, by their sum"
    )
    scaled = np.asarray(probabilities, np.float64) * len(probabilities)
    threshold, alias = np.ones(len(scaled)), np.arange(len(scaled), dtype=np.int32)
    small = np.flatnonzero(scaled < 1).tolist()
    large = np.flatnonzero(scaled >= 1).tolist()
    mass = scaled.tolist()  # plain numbers: ten times faster than items of an array
    while small and large:
        poor, rich = small.pop(), large[-1]
        threshold[poor], alias[poor] = mass[poor], rich
        mass[rich] -= 1 - mass[poor]
        if mass[rich] < 1:
            small.append(large.pop())
    # The remaining cells are 1 up to rounding, and stay so.
    return threshold, alias


def noise_tables(probabilities: np.ndarray) -> dict[str, Array]:
    """Computes {name: table} from which `sample_noise` draws words and takes their log q.

    Args:
      probabilities: q, [V], all above 0, with the sum 1.

    Returns:
      {"log_q" float32 [V] nats, "threshold" float32 [V], "alias" int32 [V]}.

    Raises:
      ValueError: probabilities are not [V] or do not sum to 1; or one is not above 0: its word
        would never be drawn, and its correction would be infinite.

    Example:
      >>> tables = losses.noise_tables(np.full(4, 0.25))
      >>> print(tables["log_q"].round(3))
      [-1.386 -1.386 -1.386 -1.386]

    Source: see `alias_table`.
    """
    tables = tables_with_zeros(probabilities)
    probabilities = np.asarray(probabilities)
    value_checks.refuse("probabilities", probabilities, probabilities == 0, "each word some")
    return tables


def tables_with_zeros(probabilities: np.ndarray) -> dict[str, Array]:
    """Computes the tables of `noise_tables` where probabilities may be 0, with log q of -inf."""
    threshold, alias = alias_table(probabilities)
    with np.errstate(divide="ignore"):
        log_q = np.log(probabilities)
    return {
        "log_q": jnp.asarray(log_q, jnp.float32),
        "threshold": jnp.asarray(threshold, jnp.float32),
        "alias": jnp.asarray(alias),
    }


def draw_noise(tables: Tables, key: Array, shape: Shape) -> Array:
    """Draws words from q, with repeats.

    Args:
      tables: see `noise_tables`.
      key: a key of `jax.random`.
      shape: the shape of the result.

    Returns:
      Words, int32 of that shape.

    Example:
      >>> tables = losses.noise_tables(np.array([1.0, 1e-9]) / (1 + 1e-9))
      >>> print(losses.draw_noise(tables, jax.random.key(0), (3,)))
      [0 0 0]

    Source: Walker (1977).
    """
    cell_key, threshold_key = jax.random.split(key)
    cells = jax.random.randint(cell_key, shape, 0, tables["alias"].shape[0], jnp.int32)
    stays = jax.random.uniform(threshold_key, shape) < tables["threshold"][cells]
    return jnp.where(stays, cells, tables["alias"][cells])


class NoiseSample(NamedTuple):
    """Noise words for a batch.

    Attributes:
      words: int32, [K] for the batch, [B, K] for each batch row, [..., K] for each token.
      mask: bool of the same shape, False where a repeated draw was dropped.
      log_expected: log of the expected counts, of the same shape.
    """

    words: Array
    mask: Array
    log_expected: Array


def log_expected_count(log_q: Array, draws: int, distinct: bool) -> Array:
    """Computes the logarithm of a word's expected count among some draws.

    It is log(K q) with repeats kept, log(1 - (1 - q)^K) with repeats dropped.

    Args:
      log_q: log q, [...], nats.
      draws: K, at least 1.
      distinct: whether repeated draws are dropped.

    Returns:
      [...], of the type of log_q.

    Raises:
      ValueError: a log q is above 0, or K below 1.

    Example:
      >>> print(jnp.exp(losses.log_expected_count(jnp.log(0.5), 2, distinct=True)))
      0.75

    Source: Jean et al. (2015), section 3, for the correction; the count is binomial.
    """
    value_checks.check_log_probs(log_q=log_q)
    value_checks.check_least(1, "at least 1", draws=draws)
    log_count = log_q + jnp.log(draws).astype(log_q.dtype)
    if not distinct:
        return log_count
    # A word that is hardly ever drawn is not drawn twice; its q may be too small for a float.
    is_rare = log_q < RARE
    log_q = jnp.where(is_rare, RARE, log_q)
    return jnp.where(is_rare, log_count, jnp.log(-jnp.expm1(draws * jnp.log1p(-jnp.exp(log_q)))))


def draw_per_unit(draw, key, shape, draws, per) -> Any:
    """Draws, by draw(key, shape), numbers for the whole batch or for each batch row or each token.

    Gives [draws] if `per` is "batch", [B, draws] for "row", [..., draws] for "token"; raises
    ValueError for another `per`. `shape` is the tokens', [B, ...]. With `Keys`, each batch row
    draws from a key of its own, whatever rows are beside it.
    """
    if per not in UNITS:
        raise ValueError(f"per is {per!r}: give one of {', '.join(UNITS)}")
    if per == "row" and not shape:
        raise ValueError("per is 'row', and one token has no rows: give tokens [B, ...]")
    row_shape = shape[1:] if per == "token" else ()
    if not isinstance(key, Keys):
        return draw(key, (draws,) if per == "batch" else (*shape[:1], *row_shape, draws))
    # Dropout uses the same keys: NOISE gives another stream. The keys of the rows are the batch's
    # key with a small number folded in.
    if per == "batch":
        return draw(jax.random.fold_in(key.batch, NOISE), (draws,))
    return jax.vmap(lambda row: draw(row, (*row_shape, draws)))(fold_in_rows(key.rows, NOISE))


def sample_noise(
    tables, key, shape: Shape, draws: int, *, per: str = "batch", distinct: bool = False
) -> NoiseSample:
    """Draws K noise words for tokens, with their expected counts.

    Args:
      tables: see `noise_tables`.
      key: one key, or `zoo.base.arrays.random_keys.Keys` for tokens [B, T]: words for the batch
        then come from its `batch` key, words for each batch row or token from the keys of the rows.
      shape: the shape of the tokens, [B, ...].
      draws: K, at least 1.
      per: the unit that has words of its own, "batch", "row" or "token"; a batch row is a row of
        the first axis.
      distinct: whether repeated draws are dropped, that is, masked; words are then sorted.

    Returns:
      A `NoiseSample`: words, mask, log_expected.

    Raises:
      ValueError: `per` is unknown, or K is below 1.

    Example:
      >>> tables = losses.noise_tables(np.full(5, 0.2))
      >>> sample = losses.sample_noise(tables, jax.random.key(0), (2, 3), 4, per="row")
      >>> print(sample.words.shape, sample.mask.all(), jnp.exp(sample.log_expected[0, 0]).round(3))
      (2, 4) True 0.8

    Source: Jozefowicz et al. (2016), section 3.1.
    """
    value_checks.check_least(1, "at least 1", draws=draws)
    words = draw_per_unit(lambda key, shape: draw_noise(tables, key, shape), key, shape, draws, per)
    mask = jnp.ones(words.shape, bool)
    if distinct:
        words = jnp.sort(words, axis=-1)
        mask = mask.at[..., 1:].set(words[..., 1:] != words[..., :-1])
    log_expected = log_expected_count(tables["log_q"][words], draws, distinct)
    return NoiseSample(words, mask, log_expected)
