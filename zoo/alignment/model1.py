"""IBM model 1, a word-translation model without order, trained by EM (Brown et al. 1993).

A source sentence e_0 ... e_{I-1} and a null word e_I generate a target sentence f_0 ... f_{J-1}:

    p(f | e) = prod_j 1 / (I + 1) sum_{i <= I} t(f_j | e_i)

The log-likelihood has a single maximum, except for ties, and no step of EM lowers it.

P. Brown, S. Della Pietra, V. Della Pietra, R. Mercer: The Mathematics of Statistical Machine
Translation, Computational Linguistics 19 (1993), section 4.2.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

Sentence = Sequence[str]
Link = tuple[int, int]
# Pairs of a source and a target token that are held at a time as float64; all are held as int32.
BLOCK = 1 << 22
NULL = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Model1:
    """Translation probabilities t(target word given source word), and alignments from them.

    Attributes:
      source_ids: {word: its number}; 0 is the null word.
      target_ids: {word: its number}.
      keys: int64 [pairs], sorted: source number times the number of target words, plus target
        number, for each pair of words that occur in the same sentence pair.
      probabilities: float64 [pairs], t of each pair of words.
      log_likelihoods: of the training pairs, in nats, before each step of EM and at the end.

    Example:
      >>> sources, targets = [["the", "cat"], ["the"]], [["le", "chat"], ["le"]]
      >>> model = alignment.Model1.train(sources, targets, iterations=5)
      >>> model.align(sources, targets)
      [[(0, 0), (1, 1)], [(0, 0)]]
    """

    source_ids: dict[str, int]
    target_ids: dict[str, int]
    keys: np.ndarray
    probabilities: np.ndarray
    log_likelihoods: tuple[float, ...]

    @classmethod
    def train(
        cls,
        sources: Sequence[Sentence],
        targets: Sequence[Sentence],
        iterations: int = 5,
        progress: Callable[[int, float], None] = lambda step, log_likelihood: None,
    ) -> "Model1":
        """Trains a model from uniform probabilities; equal pairs give the same model, bit for bit.

        Training takes 4 bytes of memory for each pair of a source and a target token of the same
        sentence pair, and some 40 bytes for each pair of types. Its time is proportional to the
        number of pairs of tokens.

        Args:
          sources: sentences of words; some may be empty.
          targets: as many sentences of words.
          iterations: steps of EM.
          progress: called as progress(step, log_likelihood) before each step, and at the end.

        Raises:
          ValueError: the numbers of source and target sentences differ.
        """
        if len(sources) != len(targets):
            raise ValueError(
                f"{len(sources)} source and {len(targets)} target sentences: give pairs"
            )
        source_ids, target_ids = _assign_ids(sources, start=1), _assign_ids(targets, start=0)
        size = max(1, len(target_ids))
        blocks = [
            _pair_tokens(sources[start:stop], targets[start:stop], source_ids, target_ids)
            for start, stop in _blocks(sources, targets)
        ]
        keys = [np.unique(block.keys(size)) for block in blocks]
        pairs = np.unique(np.concatenate(keys)) if keys else np.empty(0, np.int64)
        block_indices = [
            (np.searchsorted(pairs, block.keys(size)).astype(np.int32), block.starts)
            for block in blocks
        ]
        constant = -sum(float(np.log(block.choices).sum()) for block in blocks)

        def expectation_step(probabilities):
            """Computes (expected counts of the pairs, log-likelihood)."""
            counts, log_likelihood = np.zeros(len(pairs)), constant
            for index, starts in block_indices:
                if not len(starts):
                    continue
                scores = probabilities[index]
                totals = np.add.reduceat(scores, starts)
                log_likelihood += float(np.log(totals).sum())
                scores /= np.repeat(totals, np.diff(starts, append=len(index)))
                counts += np.bincount(index, scores, minlength=len(pairs))
            return counts, log_likelihood

        source_of_pair = pairs // size
        probabilities = np.full(len(pairs), 1 / size)
        log_likelihoods = []
        for step in range(iterations + 1):
            counts, log_likelihood = expectation_step(probabilities)
            log_likelihoods.append(log_likelihood)
            progress(step, log_likelihood)
            if step < iterations:
                totals = np.bincount(source_of_pair, counts, minlength=len(source_ids) + 1)
                probabilities = counts / np.maximum(totals[source_of_pair], np.finfo(float).tiny)
                # A probability that underflows would take the pair out of the model for ever.
                probabilities = np.maximum(probabilities, np.finfo(float).tiny)
        return cls(source_ids, target_ids, pairs, probabilities, tuple(log_likelihoods))

    def probability(self, target: str, source: str | None) -> float:
        """Returns t(target given source), the null word if None; 0 for pairs never seen."""
        number = NULL if source is None else self.source_ids.get(source, -1)
        if number < 0 or target not in self.target_ids:
            return 0.0
        key = number * len(self.target_ids) + self.target_ids[target]
        return float(self._look_up(np.array([key]))[0])

    def align(self, sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[list[Link]]:
        """Links each target word to its most probable source word.

        Model 1 ignores word order, so that a source word that occurs twice is equally probable at
        both positions. Among equally probable positions the nearest to the diagonal is taken, by
        |i/I - j/J|, then the earlier one; a word is preferred to the null word. Target words of the
        null word, and words never seen, have no link.

        Args:
          sources: sentences of words.
          targets: as many sentences of words.

        Returns:
          Links (i, j) of each pair, by target position.
        """
        links: list[list[Link]] = [[] for _ in sources]
        size = max(1, len(self.target_ids))
        for start, stop in _blocks(sources, targets):
            block = _pair_tokens(
                sources[start:stop], targets[start:stop], self.source_ids, self.target_ids
            )
            scores = self._look_up(block.keys(size))
            best = _best_pairs(scores, block.distance, block.starts)
            has_link = (block.position[best] < block.choices - 1) & (scores[best] > 0)
            for sentence, i, j in zip(
                *(block.sentence[has_link], block.position[best][has_link], block.target[has_link]),
                strict=True,
            ):
                links[start + sentence].append((int(i), int(j)))
        return links

    def _look_up(self, keys):
        """Looks up t of each key, float64; 0 for words never seen in the same sentence pair."""
        if not len(self.keys):
            return np.zeros(len(keys))
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rows] == keys, self.probabilities[rows], 0.0)


class _TokenPairs(NamedTuple):
    """Pairs of a source and a target token, grouped by target token."""

    source: np.ndarray  # [pairs], the source word's number
    position: np.ndarray  # [pairs], the source word's position in its sentence
    distance: np.ndarray  # [pairs], |i/I - j/J|, infinite for the null word
    word: np.ndarray  # [pairs], the target word's number
    starts: np.ndarray  # [target tokens], the first pair of each token
    choices: np.ndarray  # [target tokens], the number of pairs of each token
    sentence: np.ndarray  # [target tokens], the sentence of each token
    target: np.ndarray  # [target tokens], the position of each token in its sentence

    def keys(self, size: int) -> np.ndarray:
        """Computes the key of each pair, int64; -1 if one of the words is unknown."""
        unknown = (self.source < 0) | (self.word < 0)
        return np.where(unknown, -1, self.source.astype(np.int64) * size + self.word)


def _assign_ids(sentences, start):
    words = dict.fromkeys(word for sentence in sentences for word in sentence)
    return {word: number for number, word in enumerate(words, start)}


def _blocks(sources, targets):
    """Returns ranges (start, stop) of sentence pairs, each of about `BLOCK` pairs of tokens."""
    sizes = [(len(s) + 1) * len(t) for s, t in zip(sources, targets, strict=True)]
    block_numbers = (np.cumsum([0, *sizes])[:-1]) // BLOCK
    bounds = [*np.flatnonzero(np.diff(block_numbers)) + 1]
    ends = [0, *map(int, bounds), len(sizes)]
    return [(start, stop) for start, stop in itertools.pairwise(ends) if start < stop]


def _pair_tokens(sources, targets, source_ids, target_ids):
    """Pairs each source token, and the null word, with each target token of its sentence pair."""
    choices_of_sentence = np.array([len(s) + 1 for s in sources], np.int64)
    lengths = np.array([len(t) for t in targets], np.int64)
    source = np.array(
        [i for s in sources for i in (*(source_ids.get(word, -1) for word in s), NULL)], np.int64
    )
    words = np.array([target_ids.get(word, -1) for t in targets for word in t], np.int64)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    target = np.arange(len(words)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    choices = choices_of_sentence[sentence]
    starts = np.cumsum(choices) - choices
    token = np.repeat(np.arange(len(words)), choices)
    position = np.arange(len(token)) - starts[token]
    first = (np.cumsum(choices_of_sentence) - choices_of_sentence)[sentence][token]
    length = np.maximum(choices - 1, 1)[token]
    distance = np.abs(position / length - (target / np.maximum(lengths[sentence], 1))[token])
    distance[position == choices[token] - 1] = np.inf
    row = source[first + position]
    return _TokenPairs(row, position, distance, words[token], starts, choices, sentence, target)


def _best_pairs(scores, distance, starts):
    """Finds the best pair of each target token: the most probable, the nearest, the first."""
    if not len(starts):
        return np.empty(0, np.int64)
    counts = np.diff(starts, append=len(scores))
    highest = np.repeat(np.maximum.reduceat(scores, starts), counts)
    # The null word is infinitely far: it is taken only if no word is as probable.
    distances_of_highest = np.where(scores == highest, distance, np.inf)
    nearest = np.repeat(np.minimum.reduceat(distances_of_highest, starts), counts)
    candidate = (scores == highest) & (distances_of_highest == nearest)
    rows = np.where(candidate, np.arange(len(scores)), len(scores))
    return np.minimum.reduceat(rows, starts)


# ---- symmetrisation of alignments of both directions (Och and Ney 2003; Koehn et al. 2003, 2005)
# The intersection has few, precise links, the union many. The growing methods start from the
# intersection and add neighbouring links of the union that cover a word without a link.

METHODS = ("intersection", "grow-diag", "grow-diag-final", "grow-diag-final-and", "union")
# Diagonal neighbours last, as in the published pseudo-code: the order decides what covers a word.
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(
    forward: Collection[Link], backward: Collection[Link], method: str = "grow-diag"
) -> list[Link]:
    """Combines the alignments of a sentence pair in both directions.

    Args:
      forward: links (source position, target position) of the model of targets given sources.
      backward: links of the model of sources given targets, also (source, target).
      method: "intersection"; "union"; "grow-diag", which grows from the intersection within the
        union by the eight neighbours; "grow-diag-final", which then adds links of `forward`, and
        after them links of `backward`, with at least one word that has no link yet;
        "grow-diag-final-and", which adds such links only if both words have no link yet.

    Returns:
      Links sorted by source position, then by target position.

    Raises:
      ValueError: `method` is not one of these.

    Example:
      >>> forward, backward = [(0, 0), (1, 1), (2, 1)], [(0, 0), (1, 1), (1, 2)]
      >>> alignment.symmetrise(forward, backward, "intersection")
      [(0, 0), (1, 1)]
      >>> alignment.symmetrise(forward, backward, "grow-diag")
      [(0, 0), (1, 1), (1, 2), (2, 1)]
    """
    if method not in METHODS:
        raise ValueError(f"method {method!r}: give one of {', '.join(METHODS)}")
    intersection, union = {*forward} & {*backward}, {*forward} | {*backward}
    if method in ("intersection", "union"):
        return sorted(intersection if method == "intersection" else union)
    links, covered = {*intersection}, ({i for i, _ in intersection}, {j for _, j in intersection})

    def free(link):
        """Whether the source word, and whether the target word, has no link yet."""
        return [word not in side for word, side in zip(link, covered, strict=True)]

    def add(link):
        links.add(link)
        for word, side in zip(link, covered, strict=True):
            side.add(word)

    has_grown = True
    while has_grown:
        has_grown = False
        for i, j in sorted(links):
            for down, right in _NEIGHBOURS:
                link = (i + down, j + right)
                if link in union and link not in links and any(free(link)):
                    add(link)
                    has_grown = True
    if method != "grow-diag":
        quantifier = all if method.endswith("-and") else any
        # Each direction in turn: links of the first count as links when the second is looked at.
        for link in (*sorted(forward), *sorted(backward)):
            if quantifier(free(link)):
                add(link)
    return sorted(links)
