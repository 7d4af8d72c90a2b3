"""Context-free backgrounds."""

import dataclasses

import numpy as np

from zoo.errors import UserError, check_least
from zoo.priors.prior import Background, log_of, token_counts
from zoo.sources.source import Corpus


@dataclasses.dataclass(frozen=True)
class Uniform(Background):
    """b(x) = 1 / V.

    Example:
      >>> np.exp(priors.Uniform().log_probs(words, corpora)).tolist()
      [0.25, 0.25, 0.25, 0.25]
    """

    def log_probs(self, words: tuple[str, ...], corpora: dict[str, Corpus]) -> np.ndarray:
        """Returns log b = -log V of each word, nats, [V]."""
        return np.full(len(words), -np.log(len(words)))


@dataclasses.dataclass(frozen=True)
class Unigram(Background):
    """b(x) = (n(x) + smoothing) / (N + smoothing V), n(x) the occurrences of x.

    Attributes:
      splits: the splits whose words are counted; all splits if empty, as in Dymetman and Xiao
        (2016).
      smoothing: added to each count. A background that is counted on only some of the splits needs
        it: words without any mass can never be predicted.

    Example:
      >>> background = priors.Unigram(smoothing=1)
      >>> print(np.exp(background.log_probs(words, corpora)))  # (n + 1) / 9
      [0.1111 0.3333 0.3333 0.2222]
    """

    splits: tuple[str, ...] = ()
    smoothing: float = 0.0

    def __post_init__(self):
        check_least(self, smoothing=0)

    def log_probs(self, words: tuple[str, ...], corpora: dict[str, Corpus]) -> np.ndarray:
        """Computes log b of each word, nats, [V].

        Raises:
          UserError: a word of the lexicon would have no mass.
        """
        counter = token_counts(corpora, self.splits)
        counts = np.array([counter[word] for word in words], np.float64) + self.smoothing
        if not counts.all():
            missing = words[int(np.argmin(counts))]
            raise UserError(
                f"the unigram background gives no mass to {missing!r}, which is in the lexicon: "
                "set its smoothing above 0."
            )
        return log_of(counts / counts.sum())
