"""n-gram backgrounds estimated from text, with interpolated Kneser-Ney smoothing.

Kneser and Ney (1995) in the form of Chen and Goodman (1998), "An empirical study of smoothing
techniques for language modeling", section 3 ("modified"): with adjusted counts a and a discount D
for counts of 1, of 2, and of 3 or more,

    b(x | c) = (a(c x) - D(a(c x))) / a(c) + backoff(c) b(x | c'),
    backoff(c) = sum_x D(a(c x)) / a(c),

down to a uniform distribution over all words of the lexicon. The adjusted count a(c x) is the
number of occurrences of c x for the longest contexts and for contexts that begin a sentence; for
other contexts it is the number of different words before c x.
"""

import dataclasses

import numpy as np

from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon
from zoo.priors import backoff
from zoo.priors.prior import Texts

# Discounts for texts with too few counts to estimate them from.
USUAL_DISCOUNTS = (0.5, 1.0, 1.5)


@dataclasses.dataclass(frozen=True)
class KneserNey(backoff.Backoff):
    """b(x | the last order - 1 words), estimated on some splits and kept with the run.

    A context does not reach beyond the boundary before it.

    Attributes:
      order: n.
      splits: the splits whose text is counted; the test text should not be among them.

    Example:
      >>> background = priors.KneserNey(order=2)
      >>> lexicon = with_background(lexicon, background, sentences)
      >>> predict(background, lexicon, ["the"])
      {'</s>': 16, 'the': 11, 'cat': 61, 'sat': 11}
    """

    order: int = 3
    splits: tuple[str, ...] = ("train",)

    def __post_init__(self):
        check_least(self, "priors.KneserNey", order=2)
        if not self.splits:
            raise UserError(
                "priors.KneserNey.splits is empty: name the splits to count, as in train."
            )

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Estimates the model and returns its back-off tables; see `backoff.prepare`."""
        boundary = lexicon.boundary_id
        streams = [text.words.astype(np.int64) for text in texts.values()]
        trie, ngrams = count(streams, boundary, self.order, len(lexicon))
        weights, lists = [], []
        for first, (nodes, words, counts) in zip(trie.levels, ngrams, strict=False):
            discount, node = discounts(counts)[np.minimum(counts, 3) - 1], nodes - first
            total = np.bincount(node, counts)
            weights.append(np.bincount(node, discount) / total)
            lists.append((nodes, words, (counts - discount) / total[node]))
        (_, words, values), *lists = lists
        unigram = np.bincount(words, values, len(lexicon)) + weights[0] / len(lexicon)
        weights[0] = np.ones(1)  # the unigram distribution is kept whole
        backoffs = np.concatenate(weights)
        return backoff.prepare(trie, "list_value", lists, unigram=unigram, backoff=backoffs)


def count(streams: list[np.ndarray], boundary: int | None, order: int, vocabulary: int):
    """Returns the trie of all contexts, and (nodes, words, adjusted counts) of each length."""
    start = [] if boundary is None else [boundary]
    texts = [np.concatenate([np.array(start, np.int64), stream]) for stream in streams]
    stream = np.concatenate(texts)
    # How many words before each position its context may have: back to the last boundary.
    first = np.zeros(len(stream), bool)
    first[np.cumsum([0] + [len(text) for text in texts[:-1]])] = True
    begins = first.copy()
    if boundary is not None:
        begins[1:] |= stream[:-1] == boundary
    positions = np.arange(len(stream))
    begin = np.maximum.accumulate(np.where(begins, positions, 0))
    reach = positions - begin + (0 if boundary is None else 1)
    if boundary is not None:
        reach[first] = -1  # the boundary before a text is a context and never a target

    before = [np.where(reach >= n, np.roll(stream, n), -1) for n in range(1, order)]
    trie = backoff.Trie(np.array(before, np.int32), vocabulary)
    # Twice the key of the n-gram of the longest context at each position, and 1: only these occur.
    keys = 2 * (trie.nodes * vocabulary + stream[trie.order]) + 1
    lengths = np.minimum(reach, order - 1)[trie.order]
    ngrams, longer = [], np.zeros(0, np.int64)
    for length in reversed(range(order)):
        keys_of_length = np.concatenate([longer, keys[lengths == length]])
        keys_of_length.sort(kind="stable")  # which is fast, as the nodes are sorted already
        starts = np.flatnonzero(np.diff(keys_of_length, prepend=-1))
        counts, keys_of_length = np.diff(starts, append=len(keys_of_length)), keys_of_length[starts]
        # Where there are longer n-grams, their number comes first, and is the adjusted count.
        chosen = np.diff(keys_of_length // 2, prepend=-1) > 0
        nodes, words = np.divmod(keys_of_length[chosen] // 2, vocabulary)
        ngrams.append((nodes, words, counts[chosen]))
        longer = 2 * (trie.parent[nodes] * vocabulary + words)
    return trie, ngrams[::-1]


def discounts(counts: np.ndarray) -> np.ndarray:
    """Estimates D for counts of 1, 2, and 3 or more (Chen and Goodman 1998, equation 26)."""
    type_counts = [int((counts == number).sum()) for number in range(1, 5)]
    if all(type_counts):
        ratio = type_counts[0] / (type_counts[0] + 2 * type_counts[1])
        three = [n - (n + 1) * ratio * type_counts[n] / type_counts[n - 1] for n in (1, 2, 3)]
        if all(0 < discount <= n for n, discount in zip((1, 2, 3), three, strict=True)):
            return np.array(three)
    return np.array(USUAL_DISCOUNTS)
