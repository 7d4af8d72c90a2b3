"""Translation of many sources by a search, in batches of few shapes.

Sources of similar length are searched side by side, so that little is computed on padding. Lengths
are rounded up to few sizes, so that few programs are compiled. The hypotheses of a source do not
depend on the others of its batch, except for rounding in products of other shapes.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from zoo.data.batches import source_batch
from zoo.decoding.beam import BeamSearch, Hypotheses
from zoo.decoding.sampling import Sampling
from zoo.decoding.steps import Step
from zoo.errors import UserError

# (source words int32 [B, S], padded on the left; their lengths int32 [B]) -> (a step; the carry
# before the first word, every leaf [B, ...]).
Start = Callable[[np.ndarray, np.ndarray], tuple[Step, Any]]
# Lengths are rounded up to multiples of this, and to coarser ones from 4 times this on.
_WORDS = 8
# Greatest number of tokens of a hypothesis: so many for each source word, plus a constant.
LONGEST_RATIO, LONGEST_EXTRA = 2.0, 10


class Hypothesis(NamedTuple):
    """A translation found by a search."""

    words: list[int]  # ids, without the boundary
    log_probs: list[float]  # log p of each token given the tokens before, with the boundary, nats
    log_prob: float  # their sum, nats
    score: float
    complete: bool


def padded_length(length: int) -> int:
    """Rounds a length up to a size: 8, 16, 24, 32, 48, 64, 96, 128, 192 ..."""
    unit = _WORDS
    while length > 4 * unit:
        unit *= 2
    return max(unit, -(-length // unit) * unit)


def translate(
    start: Start,
    sources: Sequence[Sequence[int]],
    search: BeamSearch | Sampling,
    *,
    boundary: int,
    batch: int = 32,
    ratio: float = LONGEST_RATIO,
    extra: int = LONGEST_EXTRA,
    done: Callable[[int], Any] = lambda sentences: None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Searches or samples hypotheses of each source, in the order of the sources."""
    if not 0 < ratio < math.inf:
        raise UserError(f"the ratio of the longest translation is {ratio}: give one above 0.")
    ratio = min(ratio, float(search.longest))  # a larger ratio has no effect
    lengths = np.array([*map(len, sources)], np.int64)
    if not lengths.all():
        raise ValueError(f"source {np.argmin(lengths)} is empty: a step starts from some word")
    limits = np.minimum(np.floor(ratio * lengths + extra), search.longest).astype(np.int64)
    limits = np.maximum(limits, search.shortest)
    sentence_numbers = np.arange(len(sources)) if numbers is None else np.asarray(numbers)
    order = np.argsort(lengths, kind="stable")
    rows = min(batch, 1 << max(0, len(sources) - 1).bit_length())
    translations: list[list[Hypothesis]] = [[] for _ in sources]
    for first in range(0, len(order), rows):
        # A batch that is not full is filled with copies of the last source, not searched.
        positions = np.arange(first, first + rows)
        indices = order[np.minimum(positions, len(order) - 1)]
        row_limits = np.where(positions < len(order), limits[indices], 0)
        size = padded_length(int(lengths[indices].max()))
        longest = min(int(ratio * size + extra), search.longest)
        settings = dataclasses.replace(search, longest=max(longest, search.shortest))
        step, carry = start(*source_batch([sources[row] for row in indices], size))
        options = {"numbers": sentence_numbers[indices]} if isinstance(search, Sampling) else {}
        hypotheses = settings.search(
            step, np.full(rows, boundary), carry, boundary=boundary, longest=row_limits, **options
        )
        remaining = len(order) - first
        for row, nbest in zip(indices[:remaining], unbatch(hypotheses, boundary), strict=False):
            translations[row] = nbest
        done(min(remaining, rows))
    return translations


def unbatch(batched: Hypotheses, boundary: int) -> list[list[Hypothesis]]:
    """Returns the hypotheses of each sentence of a batch, by their ranks."""
    arrays = jax.device_get(batched)
    sentences = []
    for sentence, lengths in enumerate(arrays.lengths):
        hypotheses = []
        for rank in np.flatnonzero(lengths):
            index, length = (sentence, rank), lengths[rank]
            words = arrays.words[index][:length].tolist()
            hypothesis = Hypothesis(
                words=words[:-1] if arrays.complete[index] else words,
                log_probs=arrays.log_probs[index][:length].tolist(),
                log_prob=float(arrays.log_prob[index]),
                score=float(arrays.score[index]),
                complete=bool(arrays.complete[index]),
            )
            hypotheses.append(hypothesis)
        sentences.append(hypotheses)
    return sentences
