"""Word errors: the edit distance of all hypotheses of a list from their reference."""

from collections.abc import Sequence

import numpy as np

# The cost of an edit, and beside it what it is: sums of costs then hold the numbers of both.
_EDIT, _DELETION, _INSERTION = 1 << 42, 1 << 21, 1


def count_errors(hypotheses: Sequence[Sequence[str]], reference: Sequence[str]) -> np.ndarray:
    """Fewest edits that make each hypothesis of the reference (Levenshtein 1966).

    Of equally few edits those with fewest deletions and insertions are counted, that is most
    substitutions. One row of the table is computed at a time, for all hypotheses and positions of
    the reference together; the running minimum along the row is that of the deletions.

    Args:
      hypotheses: words of each.
      reference: words.

    Returns:
      int64 [hypotheses, 3]: substitutions, insertions, deletions.
    """
    numbers = {word: n for n, word in enumerate(dict.fromkeys(reference))}
    target = np.array([numbers[word] for word in reference], np.int64)
    lengths = np.array([*map(len, hypotheses)], np.int64)
    words = np.full((len(hypotheses), max([0, *lengths.tolist()])), -1, np.int64)
    for row, hypothesis in zip(words, hypotheses, strict=True):
        row[: len(hypothesis)] = [numbers.get(word, -1) for word in hypothesis]
    steps = np.arange(len(target) + 1) * (_EDIT + _DELETION)
    cost = np.tile(steps, (len(hypotheses), 1))
    for position in range(words.shape[1]):
        substituted = cost[:, :-1] + np.where(words[:, position, None] == target, 0, _EDIT)
        inserted = cost + (_EDIT + _INSERTION)
        new = inserted.copy()
        new[:, 1:] = np.minimum(inserted[:, 1:], substituted)
        new = np.minimum.accumulate(new - steps, axis=1) + steps
        cost = np.where((position < lengths)[:, None], new, cost)
    total = cost[:, -1]
    edits, deletions = total // _EDIT, total % _EDIT // _DELETION
    insertions = total % _DELETION
    return np.stack([edits - deletions - insertions, insertions, deletions], axis=1)
