"""Part of speech and morphology, as a treebank gives them."""

import collections
import dataclasses
import logging
import re

from zoo.errors import UserError, named
from zoo.priors.features.suffix_guesser import SuffixGuesser
from zoo.priors.prior import FeaturePrior, check_splits, token_counts
from zoo.sources.source import Corpus

logger = logging.getLogger(__name__)

NIL = "POS:NIL"  # of a word that no token shows, and of boundaries
# Words such as <unk> and </s> stand for others, or for none: their letters carry no information.
_MARK = re.compile(r"</?\w+>")


@dataclasses.dataclass(frozen=True)
class Morphology(FeaturePrior):
    """The union of the tags of all tokens of a word ("POS:NOUN", "Gender:Fem").

    Dymetman and Xiao (2016), section 5.2. A word that no token shows (a boundary) has "POS:NIL".
    The kind of a tag is its name up to the colon; the kinds found are logged. They include a
    treebank's XPOS and lemmas if data.columns asks for these: see data.Conllu.

    Attributes:
      splits: the splits whose tokens are taken; all splits if empty, as in the paper.
      treebanks: CoNLL-U files, each perhaps with a range, whose tokens are taken instead of the
        texts' tokens: columns UPOS and FEATS, forms as written and in lower case. The texts then
        need no tags.
      guesser: guesses the tags of a word that no token shows, learnt from the words with tags; None
        guesses nothing. Lemmas are never guessed.
      kinds: the kinds of tags that are kept; all if empty.
      without: the kinds that are left out: by default the two of Universal Dependencies that mark
        a misspelt form, or a form used as another part of speech, instead of morphology.

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
        """Returns a dict {tag: 1} for each word.

        Raises:
          UserError: the texts have no tags, or no tag of one of `kinds`.
        """
        check_splits(corpora, self.splits)
        known = self.tags_of_words(corpora, entries)
        guess = self._guess(known, corpora) if self.guesser and known else lambda word: (NIL,)
        return [dict.fromkeys(known[word] if word in known else guess(word), 1.0) for word in words]

    def tags_of_words(
        self, corpora: dict[str, Corpus], entries: dict[str, tuple[str, ...]]
    ) -> dict[str, tuple[str, ...]]:
        """Returns {word: its tags} of the words that a token or an entry shows, without guesses.

        Args:
          corpora: {split: Corpus}; empty where tags are from `treebanks`.
          entries: see `features`.

        Raises:
          UserError: see `features`.
        """
        tags: collections.defaultdict = collections.defaultdict(set)
        for word, features in entries.items():
            tags[word].update(features)
        for word, of_word in self._seen_tags(corpora):
            tags[word].update(of_word)
        counted = self._counted(set().union(*tags.values()))
        return {word: tuple(sorted(seen & counted)) for word, seen in tags.items() if seen}

    def _seen_tags(self, corpora):
        """Yields (word, tags) of each token of the splits, or of each form of the treebanks."""
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
        """Returns the tags whose kinds are kept; raises UserError for a kind not among them."""
        kinds = {_kind(tag) for tag in tags}
        if missing := [kind for kind in self.kinds if kind not in kinds]:
            raise UserError(
                f"priors.Morphology is to take tags of the kind {missing[0]!r}, and the texts have "
                f"{named(sorted(kinds), 40)}: correct kinds, or set data.columns for the kinds "
                "XPOS and Lemma."
            )
        chosen = set(self.kinds or kinds) - set(self.without)
        left_out = sorted(kinds - chosen)
        logger.info(
            "tags of the kinds %s are kept%s",
            ", ".join(sorted(chosen)),
            f", and tags of {', '.join(left_out)} are left out" if left_out else "",
        )
        return {tag for tag in tags if _kind(tag) in chosen or tag == NIL}

    def _guess(self, known, corpora: dict[str, Corpus]):
        """Returns the function that guesses the tags of a word."""
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
