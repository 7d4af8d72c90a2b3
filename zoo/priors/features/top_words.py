"""Word identity of the M most frequent words, and one feature for all the others."""

import dataclasses

from zoo.errors import UserError, check_least
from zoo.priors.prior import FeaturePrior, token_counts
from zoo.sources.source import Corpus

NOT_TOP = "Word:@not_top"


@dataclasses.dataclass(frozen=True)
class TopWords(FeaturePrior):
    """Features "Word:x" for the `count` most frequent words, "Word:@not_top" for all others.

    Dymetman and Xiao (2016), section 5.2, the M + 1 features "topform".

    Attributes:
      count: M.
      splits: the splits whose words are counted; all splits if empty, as in the paper.

    Example:
      >>> prior = priors.TopWords(count=1)
      >>> prior.features(("the", "sat"), corpora, {})
      [{'Word:the': 1.0}, {'Word:@not_top': 1.0}]
    """

    count: int = 2500
    splits: tuple[str, ...] = ()

    def __post_init__(self):
        check_least(self, "priors.TopWords", count=0)

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Returns one feature for each word; of words of equal count the first are on top.

        Raises:
          UserError: no word has a count.
        """
        counts = token_counts(corpora, self.splits)
        if not any(counts[word] for word in words):
            raise UserError(
                "priors.TopWords needs to know which words are frequent, and none of the words has "
                "a count: give the lexicon counts, or a text."
            )
        by_count = sorted(words, key=lambda word: -counts[word])
        top = set(by_count[: self.count])
        return [{f"Word:{word}" if word in top else NOT_TOP: 1.0} for word in words]
