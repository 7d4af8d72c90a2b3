"""Counts of n-grams that hypotheses share with references, for all hypotheses of a list at once."""

from collections.abc import Sequence

import numpy as np


def count_matches(
    hypotheses: Sequence[Sequence], references: Sequence[Sequence], order: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matches of n-grams, clipped by the reference that has most of each (Papineni et al. 2002).

        matches[h, n] = sum over n-grams g of min(count of g in h, max over r of count of g in r)

    Args:
      hypotheses: sequences of words or of characters.
      references: such sequences.
      order: the largest n.

    Returns:
      matches, int64 [hypotheses, order]; the n-grams of each hypothesis, [hypotheses, order]; those
      of each reference, [references, order].
    """
    sequences = [*hypotheses, *references]
    first = len(hypotheses)
    lengths = np.array([*map(len, sequences)], np.int64)
    numbers: dict = {}
    items = [numbers.setdefault(item, len(numbers)) for one in sequences for item in one]
    items_array = np.array(items, np.int64)
    owners = np.repeat(np.arange(len(sequences)), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(items))  # items from here to end
    size = len(numbers) + 1
    grams, starts = items_array, np.arange(len(items))
    matches = np.zeros((len(sequences), order), np.int64)
    for n in range(1, order + 1):
        if n > 1:
            # An n-gram is an (n-1)-gram, by its number, and the item after it.
            kept = left[starts] >= n
            starts = starts[kept]
            grams = grams[kept] * size + items_array[starts + n - 1]
        kinds, grams = np.unique(grams, return_inverse=True)
        matches[:, n - 1] = _clipped(owners[starts], grams, len(kinds), first, len(sequences))
    totals = np.maximum(lengths[:, None] - np.arange(order), 0)
    return matches[:first], totals[:first], totals[first:]


def _clipped(owners, grams, kinds, first, count):
    """Sums over kinds of min(count in an owner, most in an owner from `first` on), [count]."""
    if not kinds:
        return np.zeros(count, np.int64)
    held, times = np.unique(owners * kinds + grams, return_counts=True)
    owner, kind = held // kinds, held % kinds
    most = np.zeros(kinds, np.int64)
    reference = owner >= first
    np.maximum.at(most, kind[reference], times[reference])
    return np.bincount(owner, np.minimum(times, most[kind]), minlength=count).astype(np.int64)
