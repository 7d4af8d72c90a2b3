"""Corpus metrics computed from sums of sentence statistics: BLEU, chrF, word error rate.

A metric counts integers for each hypothesis, its statistics. The figure is a formula of the sums of
statistics over the sentences, so that choosing another hypothesis only changes a sum.
"""

import abc
import dataclasses
import itertools
import shlex
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from zoo.base import lazy
from zoo.errors import UserError

# Tokenizers of `sacrebleu` that need no other package.
TOKENIZERS = ("none", "13a", "intl", "char", "zh")


@dataclasses.dataclass(frozen=True)
class Metric(abc.ABC):
    """The interface of metrics.

    Attributes:
      name: the name as people write it.
      unit: the unit of the figure.
      sign: 1 if larger is better, -1 if smaller.
      multiple_references: whether a sentence may have several references.
    """

    name: ClassVar[str] = ""
    unit: ClassVar[str] = ""
    sign: ClassVar[int] = 1
    multiple_references: ClassVar[bool] = True

    @abc.abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Counts the statistics of texts against their references, float64 [hypotheses, S].

        Args:
          hypotheses: texts of one sentence.
          references: references of the sentence.
        """

    def count_corpus(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Counts the statistics of each sentence of a text with one reference, [sentences, S]."""
        pairs = zip(hypotheses, references, strict=True)
        return np.concatenate([self.statistics([text], [reference]) for text, reference in pairs])

    @abc.abstractmethod
    def figure(self, statistics: np.ndarray) -> np.ndarray:
        """Computes the metric of a corpus from its sums of statistics, [..., S] -> [...]."""

    @abc.abstractmethod
    def size(self, statistics: np.ndarray) -> np.ndarray:
        """Returns the words of the references, from sums of statistics, [..., S] -> [...]."""

    def gain(self, statistics: np.ndarray, background: np.ndarray) -> np.ndarray:
        """Scores hypotheses as a part of a corpus, in words, larger is better (Chiang et al. 2008).

            gain(e) = size(b + s(e)) figure(b + s(e)) / 100

        Args:
          statistics: s, [..., S].
          background: b, the statistics of other sentences, [S].
        """
        total = statistics + background
        return self.sign * self.size(total) * self.figure(total) / 100

    @abc.abstractmethod
    def signature(self) -> str:
        """Returns a text that names the metric and its settings, `sacrebleu`'s if it has one."""


def _sacrebleu():
    """Imports `sacrebleu.metrics`; without the package, an error names what to install."""
    with lazy.extra():
        import sacrebleu.metrics
    return sacrebleu.metrics


def align_words(hypothesis: str, reference: str):
    """Aligns two texts word by word by the fewest edits, as a `jiwer.WordOutput`."""
    with lazy.extra():
        import jiwer
    return jiwer.process_words(" ".join(reference.split()), " ".join(hypothesis.split()))


def alignment_lines(alignment) -> list[str]:
    """Formats an alignment as lines: the reference, and below it the hypothesis and the edits."""
    with lazy.extra():
        import jiwer
    lines = jiwer.visualize_alignment(alignment, show_measures=False).splitlines()[2:]
    return [line.rstrip() for line in lines]


def describe_edits(alignment) -> Iterator[str]:
    """Yields each edited word of an alignment as "reference word -> hypothesis word"."""
    reference_words, hypothesis_words = alignment.references[0], alignment.hypotheses[0]
    for chunk in alignment.alignments[0]:
        if chunk.type != "equal":
            reference_chunk = reference_words[chunk.ref_start_idx : chunk.ref_end_idx]
            hypothesis_chunk = hypothesis_words[chunk.hyp_start_idx : chunk.hyp_end_idx]
            for pair in itertools.zip_longest(reference_chunk, hypothesis_chunk, fillvalue="***"):
                yield " -> ".join(pair)


class _SacrebleuMetric(Metric):
    """A metric of `sacrebleu`, which counts the n-grams."""

    @abc.abstractmethod
    def _official(self):
        """Returns `sacrebleu`'s metric."""

    def statistics(self, hypotheses, references):
        """Counts n-grams and matches, each hypothesis against its best reference."""
        # sacrebleu's own tests use these counts, for which it has no public function.
        columns = [[text] * len(hypotheses) for text in references]
        counts = self._official()._extract_corpus_statistics(hypotheses, columns)
        return np.array(counts, np.float64)

    def signature(self):
        """Returns `sacrebleu`'s signature, which its metric has after its first score."""
        official = self._official()
        official.corpus_score(["a"], [["a"]])
        return str(official.get_signature())


@dataclasses.dataclass(frozen=True)
class Bleu(_SacrebleuMetric):
    """BLEU with n-grams to 4 (Papineni et al. 2002), as `sacrebleu` computes it.

    statistics: length, length of the nearest reference, matches of order 1 to 4, n-grams of each.

    Attributes:
      tokenize: one of `sacrebleu`'s tokenizers; "none" for texts that are tokenised.

    Example:
      >>> metric = rescoring.Bleu()
      >>> statistics = metric.statistics(["a b c d e", "a b c d"], ["a b c d e f"])
      >>> metric.figure(statistics).round(2).tolist()
      [81.87, 60.65]
    """

    tokenize: str = "none"
    name: ClassVar[str] = "BLEU"

    def __post_init__(self):
        """Raises UserError for a tokenizer that `sacrebleu` does not know."""
        names = _sacrebleu().BLEU.TOKENIZERS
        if self.tokenize not in names:
            raise UserError(f"--tokenize {self.tokenize}: give one of {', '.join(sorted(names))}.")
        try:
            self._official()
        except (ImportError, RuntimeError, OSError) as error:  # no package, or no download
            _, command, package = str(error).partition("pip install ")
            remedy = command + shlex.quote(package.strip()) if command else str(error)
            raise UserError(f"--tokenize {self.tokenize} is not installed: {remedy}.") from error

    def _official(self):
        return _sacrebleu().BLEU(tokenize=self.tokenize, force=True)

    def figure(self, statistics):
        """Computes BLEU, 0 to 100; the n-th order without a match counts as 1/2^n matches."""
        statistics = np.asarray(statistics, np.float64)
        length, reference = statistics[..., 0], statistics[..., 1]
        matches, totals = statistics[..., 2:6], statistics[..., 6:10]
        is_missed = matches == 0
        smoothed = np.where(is_missed, 0.5 ** np.cumsum(is_missed, axis=-1), matches)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.log(smoothed / totals).mean(-1)
            brevity = np.minimum(0, 1 - reference / length)
            figure = 100 * np.exp(mean + brevity)
        return np.where((totals > 0).all(-1) & ~is_missed.all(-1), figure, 0.0)

    def size(self, statistics):
        """Returns the length of the references in words."""
        return statistics[..., 1]


@dataclasses.dataclass(frozen=True)
class ChrF(_SacrebleuMetric):
    """chrF2 with n-grams of characters to 6 (Popović 2015), as `sacrebleu` computes it.

    statistics: for each order n-grams of the hypothesis, of the reference, and matches.

    Example:
      >>> metric = rescoring.ChrF()
      >>> statistics = metric.statistics(["the cat", "the dog"], ["the cats"])
      >>> metric.figure(statistics).round(2).tolist()
      [77.57, 16.57]
    """

    name: ClassVar[str] = "chrF2"
    order: ClassVar[int] = 6

    def _official(self):
        return _sacrebleu().CHRF()

    def figure(self, statistics):
        """Computes chrF2, 0 to 100: the F-score of mean precision and recall, with beta = 2."""
        statistics = np.asarray(statistics, np.float64)
        counts = statistics.reshape(*statistics.shape[:-1], self.order, 3)
        *totals, matches = np.moveaxis(counts, -1, 0)  # of hypothesis and reference
        valid = (totals[0] > 0) & (totals[1] > 0)
        orders = np.maximum(valid.sum(-1), 1)
        precision, recall = (
            np.where(valid, matches / np.maximum(n, 1e-9), 0).sum(-1) / orders for n in totals
        )
        norm = 4 * precision + recall
        return np.where(norm > 0, 500 * precision * recall / np.where(norm > 0, norm, 1), 0.0)

    def size(self, statistics):
        """Returns the number of characters of the references, five to a word."""
        return statistics[..., 1] / 5


@dataclasses.dataclass(frozen=True)
class WordErrorRate(Metric):
    """Word error rate, 100 (substitutions + insertions + deletions) / words of the references.

    statistics: these three numbers, and the words of the reference.

    Example:
      >>> metric = rescoring.WordErrorRate()
      >>> statistics = metric.statistics(["a x c", "a c"], ["a b c"])  # one error each
      >>> metric.figure(statistics.sum(0)).round(1).item()
      33.3
    """

    name: ClassVar[str] = "WER"
    unit: ClassVar[str] = " %"
    sign: ClassVar[int] = -1
    multiple_references: ClassVar[bool] = False

    def statistics(self, hypotheses, references):
        """Counts the edits of hypotheses and the words of their only reference."""
        (reference,) = references
        alignments = [align_words(text, reference) for text in hypotheses]
        rows = [(edits.substitutions, edits.insertions, edits.deletions) for edits in alignments]
        words = np.full((len(rows), 1), len(reference.split()))
        return np.hstack([np.reshape(rows, (-1, 3)), words]).astype(np.float64)

    def figure(self, statistics):
        """Computes the word error rate in per cent; infinite for errors without a reference."""
        statistics = np.asarray(statistics, np.float64)
        errors, words = statistics[..., :3].sum(-1), statistics[..., 3]
        rate = errors / np.where(words > 0, words, 1)
        return 100 * np.where(words > 0, rate, np.where(errors > 0, np.inf, 0.0))

    def gain(self, statistics, background):
        """Returns the negative number of edits of each hypothesis."""
        # Word errors are sums, and need no background.
        return -np.asarray(statistics, np.float64)[..., :3].sum(-1)

    def size(self, statistics):
        """Returns the number of words of the references."""
        return statistics[..., 3]

    def signature(self):
        """Returns a text that tells how words are compared."""
        return "WER, words between blanks as they are written"


# {value of --metric: the metric}. A metric is a class above, or a file, and a line here.
METRICS: dict[str, type[Metric]] = {"bleu": Bleu, "chrf": ChrF, "wer": WordErrorRate}


def make_metric(name: str, tokenize: str = "none") -> Metric:
    """Creates the metric named in `METRICS`, with the tokenizer if it has the field `tokenize`."""
    metric = METRICS[name]
    fields = {field.name for field in dataclasses.fields(metric)}
    return metric(**({"tokenize": tokenize} if "tokenize" in fields else {}))
