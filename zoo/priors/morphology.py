"""Part of speech and morphology, as a treebank or a grammar gives them."""

import collections
import dataclasses

from zoo.errors import UserError
from zoo.priors.prior import FeaturePrior, check_splits


@dataclasses.dataclass(frozen=True)
class Morphology(FeaturePrior):
    """The union of the tags of all tokens of a word ("POS:NOUN", "Gender:Fem").

    Dymetman and Xiao (2016), section 5.2. A word that no token shows (a boundary) has "POS:NIL".

    Attributes:
      splits: whose tokens are taken; all splits if empty, as in the paper.
    """

    splits: tuple[str, ...] = ()

    def features(self, words, corpora, entries):
        """A dict {tag: 1} a word; UserError if the source has no tags."""
        check_splits(corpora, self.splits)
        tags = collections.defaultdict(set)
        for word, features in entries.items():
            tags[word].update(features)
        for name, corpus in corpora.items():
            if self.splits and name not in self.splits:
                continue
            if corpus.features is None:
                raise UserError(
                    f"priors.Morphology needs tags, and {corpus.name} has none: "
                    "use a data.Conllu source or leave this prior out."
                )
            for sentence, sentence_tags in zip(corpus.sentences, corpus.features, strict=True):
                for word, token_tags in zip(sentence, sentence_tags, strict=True):
                    tags[word].update(token_tags)
        return [dict.fromkeys(sorted(tags.get(word, ())) or ["POS:NIL"], 1.0) for word in words]
