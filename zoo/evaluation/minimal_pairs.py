"""Minimal pairs: does the model prefer the good sentence to its ungrammatical twin?

Linzen et al., "Assessing the ability of LSTMs to learn syntax-sensitive dependencies" (2016); the
files are those of CLAMS (Mueller et al. 2020), a sentence a line:

    True <tab> les auteurs sont vieux
    False <tab> les auteurs est vieux

A False line is a twin of the last True line before it.
"""

import collections
import dataclasses

import numpy as np

from zoo import files
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError, named
from zoo.evaluation import sentence_scores
from zoo.lexicon import Lexicon

Pair = tuple[list[str], list[str]]


@dataclasses.dataclass(frozen=True, eq=False)
class PairScores:
    """good, bad: float64 [n], log p of the two sentences in nats; NaN where a pair is skipped.

    scored: bool [n], whether each pair was scored.
    missing: of each pair the words for want of which it is skipped, none if it is scored; () where
      they are not known.
    """

    good: np.ndarray
    bad: np.ndarray
    scored: np.ndarray
    missing: tuple[tuple[str, ...], ...] = ()

    @property
    def pairs(self) -> int:
        """How many pairs were scored."""
        return int(self.scored.sum())

    @property
    def skipped(self) -> int:
        """How many pairs were not, for want of a word."""
        return len(self.scored) - self.pairs

    @property
    def right(self) -> int:
        """How many pairs have the good sentence strictly more probable."""
        return int((self.good > self.bad).sum())

    @property
    def accuracy(self) -> float:
        """right / pairs; NaN without pairs."""
        return self.right / self.pairs if self.pairs else float("nan")

    @property
    def mean_difference(self) -> float:
        """Mean of log p(good) - log p(bad) over the scored pairs, nats; NaN without pairs."""
        with np.errstate(invalid="ignore"):  # two impossible sentences differ by NaN
            difference = self.good[self.scored] - self.bad[self.scored]
        return float(difference.mean()) if self.pairs else float("nan")

    @property
    def commonest_missing(self) -> list[tuple[str, int]]:
        """(word, for want of which pairs were skipped; how many), the most frequent first."""
        return collections.Counter(word for words in self.missing for word in words).most_common()

    def figures(self) -> dict:
        """All numbers of them."""
        names = ("accuracy", "right", "pairs", "skipped", "mean_difference")
        return {name: getattr(self, name) for name in names}


def read(path: str, lower_case: bool = False) -> list[Pair]:
    """The (good, bad) pairs of a file; UserError with the line where its form is wrong."""
    found = files.find(path)
    pairs, good, twins = [], None, 0

    def fail(number, what):
        raise UserError(
            f"{found}, line {number}: {what}; write True or False, a tab and the sentence, each "
            "True line followed by its False twins."
        )

    for number, line in enumerate(files.read_text(found).removesuffix("\n").split("\n"), 1):
        if not line.strip():
            continue
        label, tab, sentence = line.partition("\t")
        words = (sentence.lower() if lower_case else sentence).split()
        if not tab or label not in ("True", "False"):
            fail(number, "not a labelled sentence")
        if not words:
            fail(number, "no words")
        if label == "True":
            if good and not twins:
                fail(number, "the True sentence before this one has no False twin")
            good, twins = words, 0
        elif good is None:
            fail(number, "a False sentence before any True one")
        else:
            pairs.append((good, words))
            twins += 1
    if good and not twins:
        fail(number, "the last True sentence has no False twin")
    return pairs


def differing_words(good: list[str], bad: list[str]) -> set[str]:
    """The words of which one sentence has more than the other."""
    first, second = collections.Counter(good), collections.Counter(bad)
    return {*(first - second), *(second - first)}


def score_pairs(
    model, params, tables, lexicon: Lexicon, vocabulary: Vocabulary, pairs: list[Pair]
) -> PairScores:
    """Scores each sentence of each pair from an empty state.

    A sentence's score is sum_t log p(w_t | w_<t) over its words, the boundary left out; words
    outside the lexicon are scored as <unk>. A pair is skipped if a word in which its sentences
    differ is outside the lexicon, or any word at all where the vocabulary refuses unknown words.

    Args:
      params, tables: on the device. pairs: (good words, bad words), in the vocabulary's case.

    Raises:
      UserError: the vocabulary has no boundary for sentences to start from.
    """
    missing = tuple(missing_words(pair, lexicon, vocabulary) for pair in pairs)
    scored = np.array([not words for words in missing], bool)
    values = np.full((len(pairs), 2), np.nan)
    if scored.any():
        wanted = [pair for pair, chosen in zip(pairs, scored, strict=True) if chosen]
        sentences = [sentence for pair in wanted for sentence in pair]
        scores = sentence_scores.score(
            model, params, tables, lexicon, vocabulary, sentences, "the minimal pairs"
        )
        values[scored] = scores.of_words.reshape(-1, 2)
    return PairScores(values[:, 0], values[:, 1], scored, missing)


def missing_words(pair: Pair, lexicon: Lexicon, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The words for want of which a pair cannot be scored, in their order; see `score_pairs`."""
    needed = {*pair[0], *pair[1]} if vocabulary.unknown == "refused" else differing_words(*pair)
    words = dict.fromkeys((*pair[0], *pair[1]))
    return tuple(word for word in words if word in needed and not vocabulary.has(word, lexicon))


def judge(run, path: str) -> tuple[list[Pair], PairScores]:
    """(the pairs of a file, their scores under a run's model); see `score_pairs`.

    Raises:
      UserError: no pair can be scored, or what `read` and `score_pairs` raise.
    """
    vocabulary = run.experiment.vocabulary
    pairs = read(path, vocabulary.lower_case)
    model, lexicon = run.experiment.model, run.lexicon
    scores = score_pairs(model, run.params, run.tables, lexicon, vocabulary, pairs)
    if not scores.pairs:
        raise UserError(
            f"no pair of {path} can be scored, for want of words in the lexicon such as "
            f"{named([word for word, _ in scores.commonest_missing])}: give sentences of the words "
            "that the run was trained with."
        )
    return pairs, scores


def describe(path: str, scores: PairScores) -> str:
    """The figures as a line of text, and the commonest missing words as another, if there are."""
    line = (
        f"{path}: accuracy {scores.accuracy:.2%} ({scores.right:,} of {scores.pairs:,} pairs; "
        f"{scores.skipped:,} skipped for want of a word), mean difference "
        f"{scores.mean_difference:.3f} nats"
    )
    missing = [f"{word!r} ({count:,})" for word, count in scores.commonest_missing[:10]]
    more = ", ..." * (len(scores.commonest_missing) > 10)
    return f"{line}\n  missing words, by pairs: {', '.join(missing)}{more}" if missing else line


COLUMNS = ("pair", "good", "bad", "log_prob_good", "log_prob_bad", "difference", "right", "missing")


def rows(pairs: list[Pair], scores: PairScores):
    """A tuple of `COLUMNS` for each pair, in the order of the file, nats with six decimals.

    right: "yes" if the good sentence is strictly more probable. Of a skipped pair the numbers are
    empty, right is "skipped", and missing are the words for want of which it is.
    """
    for number, (pair, good, bad, missing) in enumerate(
        zip(pairs, scores.good, scores.bad, scores.missing, strict=True), 1
    ):
        sentences = (" ".join(sentence) for sentence in pair)
        if missing:
            yield (number, *sentences, "", "", "", "skipped", " ".join(missing))
        else:
            values = (f"{value:.6f}" for value in (good, bad, good - bad))
            yield (number, *sentences, *values, "yes" if good > bad else "no", "")
