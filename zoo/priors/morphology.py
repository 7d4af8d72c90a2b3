"""Part of speech and morphology, as a treebank or a grammar gives them."""

import collections
import dataclasses
import logging
import re

from zoo.errors import UserError, named
from zoo.priors.guesser import SuffixGuesser
from zoo.priors.prior import FeaturePrior, check_splits, token_counts
from zoo.sources.source import Corpus

logger = logging.getLogger(__name__)

NIL = "POS:NIL"  # of a word that no token shows, and of boundaries
# Words such as <unk> and </s> stand for others, or for none: their letters say nothing.
_MARK = re.compile(r"</?\w+>")


@dataclasses.dataclass(frozen=True)
class Morphology(FeaturePrior):
    """The union of the tags of all tokens of a word ("POS:NOUN", "Gender:Fem").

    Dymetman and Xiao (2016), section 5.2. A word that no token shows (a boundary) has "POS:NIL".
    The kind of a tag is its name up to the colon; which kinds there are is logged. A treebank's
    XPOS and lemmas are among them if data.columns says so: see data.Conllu.

    Attributes:
      splits: whose tokens are taken; all splits if empty, as in the paper.
      treebanks: CoNLL-U files, each perhaps with a range, whose tokens are taken in the place of
        the texts', which need no tags then: columns UPOS and FEATS, forms as they are written and
        in lower case. So tags can come from another corpus than the text.
      guesser: what the tags of a word are guessed with that no token shows, learnt from the words
        with tags; None guesses nothing. Lemmas are never guessed.
      kinds: the kinds of tags that count; all if empty.
      without: the kinds that do not: by default those of Universal Dependencies that are no
        morphology, but say that a form is misspelt, or that it acts as another part of speech.

    Example:
      >>> tags = [[("POS:DET",), ("POS:NOUN", "Number:Sing")]]
      >>> treebank = {"train": Corpus("a treebank", [["the", "cat"]], tags)}
      >>> prior = priors.Morphology()
      >>> prior.features(("</s>", "the", "cat"), treebank, {})
      [{'POS:NIL': 1.0}, {'POS:DET': 1.0}, {'Number:Sing': 1.0, 'POS:NOUN': 1.0}]
    """

    splits: tuple[str, ...] = ()
    guesser: SuffixGuesser | None = None
    kinds: tuple[str, ...] = ()
    without: tuple[str, ...] = ("ExtPos", "Typo")
    treebanks: tuple[str, ...] = ()

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """A dict {tag: 1} a word; UserError if the source has no tags, or none of a kind."""
        check_splits(corpora, self.splits)
        tags: collections.defaultdict = collections.defaultdict(set)
        for word, features in entries.items():
            tags[word].update(features)
        for word, of_word in self._seen_tags(corpora):
            tags[word].update(of_word)
        counted = self._counted(set().union(*tags.values()))
        known = {word: tuple(sorted(seen & counted)) for word, seen in tags.items() if seen}
        guess = self._guess(known, corpora) if self.guesser and known else lambda word: (NIL,)
        return [dict.fromkeys(known[word] if word in known else guess(word), 1.0) for word in words]

    def _seen_tags(self, corpora):
        """(word, tags) of each token whose tags are taken, or of each form of the treebanks."""
        if self.treebanks:
            from zoo.sources import conllu  # whose package comes with an extra

            yield from conllu.tags_of_words(self.treebanks).items()
            return
        for name, corpus in corpora.items():
            if self.splits and name not in self.splits:
                continue
            if corpus.features is None:
                raise UserError(
                    f"priors.Morphology needs tags, and {corpus.name} has none: "
                    "use a data.Conllu source or leave this prior out."
                )
            for sentence, sentence_tags in zip(corpus.sentences, corpus.features, strict=True):
                yield from zip(sentence, sentence_tags, strict=True)

    def _counted(self, tags):
        """The tags that count."""
        kinds = {_kind(tag) for tag in tags}
        if missing := [kind for kind in self.kinds if kind not in kinds]:
            raise UserError(
                f"priors.Morphology is to take tags of the kind {missing[0]!r}, and the texts have "
                f"{named(sorted(kinds), 40)}: correct kinds, or set data.columns if it is XPOS or "
                "Lemma."
            )
        chosen = set(self.kinds or kinds) - set(self.without)
        left_out = sorted(kinds - chosen)
        logger.info(
            "tags of the kinds %s count%s",
            ", ".join(sorted(chosen)),
            f", and those of {', '.join(left_out)} do not" if left_out else "",
        )
        return {tag for tag in tags if _kind(tag) in chosen or tag == NIL}

    def _guess(self, known, corpora: dict[str, Corpus]):
        """The function from a word to its tags."""
        counts = token_counts(corpora, self.splits)
        taught = {
            word: tuple(tag for tag in tags if _kind(tag) != "Lemma")
            for word, tags in known.items()
            if not _MARK.fullmatch(word)
        }
        assert self.guesser is not None  # or nothing would be guessed
        table = self.guesser.train(taught, counts)
        return lambda word: (NIL,) if _MARK.fullmatch(word) else table.guess(word)


def _kind(tag):
    return tag.partition(":")[0]
