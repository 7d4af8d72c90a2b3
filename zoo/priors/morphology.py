"""Part of speech and morphology, as a treebank gives them."""

import collections
import dataclasses
import functools
import logging
import re

from zoo.errors import UserError, check_least, quote
from zoo.priors.prior import Corpora, Entries, FeaturePrior, Words, check_splits, token_counts

logger = logging.getLogger(__name__)

NIL = "POS:NIL"  # of a word that no token shows, and of boundaries
# Words such as <unk> and </s> stand for others, or for none: their letters carry no information.
_MARK = re.compile(r"</?\w+>")


# ------------------------------------- tags of words never seen, guessed from how they end
# Brants, "TnT: a statistical part-of-speech tagger" (2000), section 2.3: the distribution of tags
# given the last i letters of a word, smoothed by the distribution given the last i - 1. Here a
# "tag" is a whole set of tags, so that a guessed word has the features, and so the signature, of
# words of the lexicon.

Tags = tuple[str, ...]
_DIGIT = re.compile(r"\d")


@dataclasses.dataclass(frozen=True)
class SuffixGuesser:
    """Guesser of the most probable tag set of a word, argmax_s P(s | its last letters), where

    P(s | last i letters) = (P'(s | last i letters) + smoothing P(s | last i - 1)) / (1 + smoothing)

    over the tag sets s of the known words, and P' is the share of s among the known words with
    these last letters. All digits count as the same letter.

    Attributes:
      longest: letters of the longest ending.
      smoothing: theta of the equation.
      rare: the guesser learns from words that occur at most so often, because new words resemble
        rare ones; from all words if none is that rare.

    Example:
      >>> tags = {"walks": ("POS:VERB",), "runs": ("POS:VERB",), "cat": ("POS:NOUN",)}
      >>> table = priors.SuffixGuesser().train(tags, dict.fromkeys(tags, 1))
      >>> table.guess("jumps"), round(table.distribution("jumps")[("POS:VERB",)], 2)
      (('POS:VERB',), 0.97)
    """

    longest: int = 6
    smoothing: float = 0.1
    rare: int = 10

    def __post_init__(self):
        check_least(self, "priors.SuffixGuesser", longest=0, smoothing=0, rare=1)

    def train(self, tags: dict[str, Tags], counts: dict[str, int]) -> "SuffixTable":
        """Counts the endings of the known words."""
        rare = [word for word in tags if counts.get(word, 0) <= self.rare]
        endings: collections.defaultdict = collections.defaultdict(collections.Counter)
        for word in rare or list(tags):
            for ending in self._endings(word):
                endings[ending][tags[word]] += 1
        return SuffixTable(self, dict(endings))

    def _endings(self, word):
        """Returns the endings of a word of 0, 1, ... letters."""
        word = _DIGIT.sub("0", word)
        return [word[len(word) - size :] for size in range(min(self.longest, len(word)) + 1)]


@dataclasses.dataclass(frozen=True, eq=False)
class SuffixTable:
    """The counts that a guesser has learnt."""

    guesser: SuffixGuesser
    endings: dict[str, collections.Counter]

    @functools.cached_property
    def _distributions(self) -> dict[str, dict[Tags, float]]:
        """P(s | ending) of the endings looked up so far; words share the short ones."""
        counts = self.endings[""]
        return {"": {tags: count / counts.total() for tags, count in counts.items()}}

    def distribution(self, word: str) -> dict[Tags, float]:
        """Computes P(s | ending of the word) of each tag set s."""
        theta = self.guesser.smoothing
        probabilities = self._distributions[""]
        for ending in self.guesser._endings(word)[1:]:
            counts = self.endings.get(ending)
            if counts is None:  # then no longer ending is known either
                break
            if ending not in self._distributions:
                total = counts.total()
                self._distributions[ending] = {
                    tags: (counts[tags] / total + theta * shorter) / (1 + theta)
                    for tags, shorter in probabilities.items()
                }
            probabilities = self._distributions[ending]
        return probabilities

    def guess(self, word: str) -> Tags:
        """Returns the most probable tag set of a word; among equals the first by name."""
        distribution = self.distribution(word)
        return min(distribution, key=lambda tags: (-distribution[tags], tags))


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

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        check_splits(corpora, self.splits)
        tags = self.tags_of_words(corpora, entries)
        guess = self._make_guesser(tags, corpora) if self.guesser and tags else lambda word: (NIL,)
        return [dict.fromkeys(tags[word] if word in tags else guess(word), 1.0) for word in words]

    def tags_of_words(self, corpora: Corpora, entries: Entries) -> dict[str, Tags]:
        """Returns {word: its tags} of the words that a token or an entry shows, without guesses."""
        tags: collections.defaultdict = collections.defaultdict(set)
        for word, features in entries.items():
            tags[word].update(features)
        for word, token_tags in self._token_tags(corpora):
            tags[word].update(token_tags)
        allowed = self._select_tags(set().union(*tags.values()))
        return {word: tuple(sorted(tag_set & allowed)) for word, tag_set in tags.items() if tag_set}

    def _token_tags(self, corpora):
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

    def _select_tags(self, tags):
        """Returns the tags whose kinds are kept; raises UserError for a kind not among them."""
        kinds = {_kind(tag) for tag in tags}
        missing = [kind for kind in self.kinds if kind not in kinds]
        if missing:
            raise UserError(
                f"priors.Morphology is to take tags of the kind {missing[0]!r}, and the texts have "
                f"{quote(sorted(kinds), 40)}: correct kinds, or set data.columns for the kinds "
                "XPOS and Lemma."
            )
        selected_kinds = set(self.kinds or kinds) - set(self.without)
        omitted_kinds = sorted(kinds - selected_kinds)
        logger.info(
            "tags of the kinds %s are kept%s",
            ", ".join(sorted(selected_kinds)),
            f", and tags of {', '.join(omitted_kinds)} are left out" if omitted_kinds else "",
        )
        return {tag for tag in tags if _kind(tag) in selected_kinds or tag == NIL}

    def _make_guesser(self, tags_by_word, corpora: Corpora):
        """Returns the function that guesses the tags of a word."""
        counts = token_counts(corpora, self.splits)
        training_tags = {
            word: tuple(tag for tag in tags if _kind(tag) != "Lemma")
            for word, tags in tags_by_word.items()
            if not _MARK.fullmatch(word)
        }
        assert self.guesser is not None  # or nothing would be guessed
        table = self.guesser.train(training_tags, counts)
        return lambda word: (NIL,) if _MARK.fullmatch(word) else table.guess(word)


def _kind(tag):
    return tag.partition(":")[0]
