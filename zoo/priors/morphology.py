"""Part of speech and morphology, as a treebank or a grammar gives them."""

import collections
import dataclasses
import re

from zoo.errors import UserError
from zoo.priors.guesser import SuffixGuesser
from zoo.priors.prior import FeaturePrior, check_splits, token_counts

# Words such as <unk> and </s> stand for others, or for none: their letters say nothing.
_MARK = re.compile(r"</?\w+>")


@dataclasses.dataclass(frozen=True)
class Morphology(FeaturePrior):
    """The union of the tags of all tokens of a word ("POS:NOUN", "Gender:Fem").

    Dymetman and Xiao (2016), section 5.2. A word that no token shows (a boundary) has "POS:NIL".

    Attributes:
      splits: whose tokens are taken; all splits if empty, as in the paper.
      guesser: what the tags of a word are guessed with that no token shows, learnt from the words
        with tags; None guesses nothing.
    """

    splits: tuple[str, ...] = ()
    guesser: SuffixGuesser | None = None

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
        known = {word: tuple(sorted(found)) for word, found in tags.items() if found}
        guess = self._guess(known, corpora) if self.guesser and known else lambda word: ("POS:NIL",)
        return [dict.fromkeys(known.get(word) or guess(word), 1.0) for word in words]

    def _guess(self, known, corpora):
        """The function from a word to its tags."""
        counts = token_counts(corpora, self.splits)
        taught = {word: tags for word, tags in known.items() if not _MARK.fullmatch(word)}
        table = self.guesser.train(taught, counts)
        return lambda word: ("POS:NIL",) if _MARK.fullmatch(word) else table.guess(word)
