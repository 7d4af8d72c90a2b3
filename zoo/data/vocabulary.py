"""How text becomes words: case, unknown words, boundaries, and what the lexicon knows of a word."""

import array
import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterable

import numpy as np

from zoo.arrays import memory
from zoo.data import sharded, unicode_forms
from zoo.data.encoded import EncodedText, Strings
from zoo.data.lexicon_priors import estimated
from zoo.data.open_words import OpenWords
from zoo.errors import UserError, check_choices, check_least, named
from zoo.lexicon import Lexicon
from zoo.priors import Background, FeaturePrior
from zoo.priors.prior import token_counts
from zoo.priors.strings import StringClass
from zoo.sources.shards import ShardedCorpus
from zoo.sources.source import Corpus, Source

UNKNOWN = "<unk>"
BOUNDARY = "</s>"


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """A recipe for a lexicon and for reading text with it.

    Attributes:
      splits: words are taken from these splits; all splits if empty.
      minimum_count: a word must occur so often in them.
      maximum_size: at most so many words, the most frequent; 0 for no limit. Words that the source
        knows beforehand are always in.
      lower_case: whether text is put in lower case.
      unknown: words outside the lexicon are "refused" (an error names them), "counted" (read as
        <unk> and counted in perplexities) or "skipped" (read as <unk> and not counted).
      boundary: "counted" (</s> after each sentence, predicted and counted), "uncounted" (predicted,
        trained, but left out of perplexities) or "none" (sentences run into each other).
      boundary_marks: how many boundaries a sentence ends with.
      features: what is known of each word, for heads and embeddings that use it: the union of what
        these priors say; of a feature that two give, the later one's value.
      background: what is known of how probable it is; it stands beside features, never alone.
      open_classes: classes of strings, each a word of the lexicon that stands for all strings of
        the class outside it; these are words then, not unknown, and a figure counts the probability
        of the string itself. No string may be of two. See zoo.data.open_words.

    Example:
      >>> vocabulary = data.Vocabulary(minimum_count=2, features=(priors.Affixes(),))
      >>> lexicon, corpora = vocabulary.build(data.Text(**paths))
      >>> lexicon.words, lexicon.counts.tolist()
      (('</s>', '<unk>', 'cat', 'the'), [2, 1, 2, 2])
    """

    splits: tuple[str, ...] = ("train",)
    minimum_count: int = 1
    maximum_size: int = 0
    lower_case: bool = False
    unknown: str = "counted"
    boundary: str = "counted"
    boundary_marks: int = 1
    features: tuple[FeaturePrior, ...] = ()
    background: Background | None = None
    open_classes: tuple[StringClass, ...] = ()

    def __post_init__(self):
        check_least(self, "vocabulary", minimum_count=1, maximum_size=0, boundary_marks=1)
        check_choices(
            self,
            "vocabulary",
            unknown=("refused", "counted", "skipped"),
            boundary=("counted", "uncounted", "none"),
        )
        for one, other in itertools.combinations(self.open_classes, 2):
            if not one.apart(other):
                raise UserError(
                    f"vocabulary.open_classes has {one.name} and {other.name}, which have strings "
                    "in common: give lengths or first letters that share them out, or one class."
                )

    def read(self, source: Source, split: str) -> Corpus:
        """A split of the source, in lower case if so asked."""
        corpus = source.read(split)
        return corpus.lower_cased() if self.lower_case else corpus

    def build(self, source: Source) -> tuple[Lexicon, dict[str, Corpus]]:
        """(the lexicon, the corpora of all splits).

        Raises:
          UserError: there is a background, or a class of strings, without features, there are more
            boundary marks than this machine has memory for, or what the priors raise.
        """
        # Not when the recipe is made: of two settings, background and features, one comes first.
        if self.background is not None and not self.features:
            raise UserError(
                f"vocabulary.background is {self.background}, and no head uses a background "
                "without features: set vocabulary.features, or vocabulary.background=none."
            )
        if self.open_classes and not self.features:
            raise UserError(
                f"vocabulary.open_classes has {self.open_classes[0].name}, whose strings are known "
                "by their features: set vocabulary.features."
            )
        memory.check_fields(self, "vocabulary", boundary_marks=4)  # of each sentence, in int32
        corpora = {split: self.read(source, split) for split in source.splits()}
        entries = self._entries(source)

        marks = [BOUNDARY] if self.boundary != "none" else []
        marks += [UNKNOWN] if self.unknown != "refused" else []
        counts = token_counts(corpora, self.splits)
        others = (corpus.sentences for split, corpus in corpora.items() if split != "train")
        texts = itertools.chain.from_iterable(others)
        unicode_forms.warn(dict.fromkeys((*counts, *itertools.chain.from_iterable(texts))))
        kept = [
            word
            for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            if count >= self.minimum_count and word not in marks
        ]
        kept = kept[: self.maximum_size or None]
        known = {*kept, *marks}  # a list of words may have the marks, too
        words = (*marks, *kept, *sorted(word for word in entries if word not in known))

        # What the model will see: unknown words as <unk>, and the boundaries. Words are counted on
        # that, so that background and frequency bands know the marks too.
        known = set(words)
        seen = {split: self._as_seen(corpus, known) for split, corpus in corpora.items()}
        train = token_counts(seen, ("train",))
        in_text = sorted(token_counts(corpora, ("train",)).items())
        lexicon = Lexicon(
            words=words,
            counts=np.array([train[word] for word in words], np.int64),
            unknown=UNKNOWN if UNKNOWN in words else None,
            # A text may have </s> written in it.
            boundary=BOUNDARY if self.boundary != "none" else None,
            left_out={word: count for word, count in in_text if word not in known},
            fused=corpora["train"].fused,
        )
        return self._opened(self._with_priors(lexicon, seen, entries)), corpora

    def _opened(self, lexicon):
        """The lexicon with a word for each class of strings, counted as the training text has them.

        What is counted of the classes is not of the unknown word any more.
        """
        if not self.open_classes:
            return lexicon
        opened = OpenWords.of(lexicon, self.open_classes)
        counts = opened.lexicon.counts.copy()
        for word, count in lexicon.left_out.items():
            word_id = opened.class_of(word)
            if word_id is not None:
                counts[word_id] += count
                if lexicon.unknown is not None:
                    counts[lexicon.ids[lexicon.unknown]] -= count
        return dataclasses.replace(opened.lexicon, counts=counts)

    def open_words(self, lexicon: Lexicon) -> OpenWords | None:
        """The classes of strings of a lexicon that `build` made; None if there are none."""
        return _open_words(lexicon, self.open_classes) if self.open_classes else None

    def extended(self, source: Source, lexicon: Lexicon, new_words: tuple[str, ...]) -> Lexicon:
        """The lexicon with new words after its own, for a model that was trained without them.

        New words get their features from the same priors; only features that the lexicon has are
        kept, for the others have no parameters. Words of the lexicon keep theirs, whatever has
        become of the files and functions that gave them: the model was trained with these. The
        background is the same recipe over all words.

        Raises:
          UserError: the lexicon has no features, so that nothing can be known of a new word, or it
            has classes of strings.
        """
        if self.open_classes:
            raise UserError(
                "strings outside the lexicon are words already (vocabulary.open_classes): judge "
                "the run as it is."
            )
        if not lexicon.feature_names:
            raise UserError(
                "words can be added only to a lexicon with features: give the config's "
                "vocabulary some."
            )
        added = dict.fromkeys(map(str.lower, new_words) if self.lower_case else new_words)
        words = (*lexicon.words, *(word for word in added if word not in lexicon.ids))
        larger = lexicon.with_words(words, lexicon.occurrences(words))
        # Texts are read as the model knows them: what was <unk> in training stays <unk>.
        seen = {
            split: self._as_seen(self.read(source, split), set(lexicon.words))
            for split in source.splits()
        }
        return self._with_priors(larger, seen, self._entries(source), trained=lexicon)

    def _entries(self, source):
        """{word: features} that the source knows beforehand, in the vocabulary's case."""
        lower = str.lower if self.lower_case else str
        entries: collections.defaultdict = collections.defaultdict(tuple)
        for word, features in source.lexicon_entries().items():
            entries[lower(word)] += features
        return entries

    def _with_priors(self, lexicon, seen, entries, trained=None):
        """The lexicon with features and background, estimated on the corpora as seen.

        Args:
          trained: a lexicon whose words are the first, and whose features are kept.
        """
        if not self.features:
            return lexicon
        return estimated(lexicon, self.features, self.background, seen, entries, trained)

    def _as_seen(self, corpus: Corpus, words: set[str]) -> Corpus:
        """The corpus with <unk> and boundaries in their places; a mark's tag is "POS:NIL"."""
        ends = [BOUNDARY] * self.boundary_marks if self.boundary != "none" else []
        if isinstance(corpus, ShardedCorpus):
            return corpus.as_seen(words, UNKNOWN, ends)
        sentences = [
            [word if word in words else UNKNOWN for word in sentence] + ends
            for sentence in corpus.sentences
        ]
        if corpus.features is None:
            return dataclasses.replace(corpus, sentences=sentences)
        features = [
            [
                tags if new == old else ("POS:NIL",)
                for new, old, tags in zip(sentence, original, sentence_tags, strict=False)
            ]
            + [("POS:NIL",)] * len(ends)
            for sentence, original, sentence_tags in zip(
                sentences, corpus.sentences, corpus.features, strict=True
            )
        ]
        return dataclasses.replace(corpus, sentences=sentences, features=features)

    def has(self, word: str, lexicon: Lexicon) -> bool:
        """Whether a word is of the lexicon, or a string of one of its classes."""
        opened = self.open_words(lexicon)
        return word in lexicon.ids if opened is None else opened.class_of(word) is not None

    def missing(self, sentences: Iterable[list[str]], lexicon: Lexicon) -> dict[str, int]:
        """{word that is not of the lexicon, nor a string of its classes: its count}, the most
        frequent first."""
        counts = collections.Counter(word for sentence in sentences for word in sentence)
        return {word: count for word, count in counts.most_common() if not self.has(word, lexicon)}

    def _refusal(self, corpus, lexicon):
        words = [*self.missing(corpus.sentences, lexicon)]
        judge = "" if self.open_classes else "judge with --add-words FILE, a file with them, "
        notes = filter(None, (lexicon.fused_note(words), unicode_forms.note(words, lexicon)))
        noted = "".join(f" ({note})" for note in notes)
        return UserError(
            f"{len(words):,} distinct word{'s' * (len(words) > 1)} of {corpus.name} "
            f"{'are' if len(words) > 1 else 'is'} not in the lexicon: {named(words)}; leave "
            f"{'them' if len(words) > 1 else 'it'} out, {judge}or train with "
            f"vocabulary.unknown=counted or skipped{noted}."
        )

    def encode(self, corpus: Corpus, lexicon: Lexicon) -> EncodedText:
        """The corpus as word ids, each with whether it is known and counted in perplexities.

        Raises:
          UserError: a word is not in the lexicon, and the vocabulary refuses those.
        """
        if isinstance(corpus, ShardedCorpus):
            return self._encode_shards(corpus, lexicon)
        # Not lists, which take eight bytes and more for what is four, or one, in the end.
        words, starts = array.array("i"), array.array("q")
        known, counted, trained = bytearray(), bytearray(), bytearray()
        has_boundary = lexicon.boundary is not None and self.boundary != "none"
        # The list of them, and int32 after each sentence.
        memory.check_fields(self, "vocabulary", boundary_marks=8 + 4 * len(corpus.sentences))
        boundaries = [lexicon.ids[BOUNDARY]] * self.boundary_marks if has_boundary else []
        marks = len(boundaries)
        opened = self.open_words(lexicon)
        log_within, string_counts = array.array("d"), array.array("q")
        prefixes = corpus.prefixes or [0] * len(corpus.sentences)
        for sentence, prefix in zip(corpus.sentences, prefixes, strict=True):
            starts.append(len(words))
            for number, word in enumerate(sentence):
                if opened is None:
                    word_id = lexicon.ids.get(word)
                else:
                    word_id, within, count = _way(word, opened)
                    log_within.append(within)
                    string_counts.append(count)
                if word_id is None and self.unknown == "refused":
                    raise self._refusal(corpus, lexicon)
                words.append(lexicon.ids[UNKNOWN] if word_id is None else word_id)
                known.append(word_id is not None)
                # A text may have <unk> written in it, as the Penn Treebank's has.
                unknown = word_id is None or word == UNKNOWN
                trained.append(number >= prefix)
                counted.append(trained[-1] and not (unknown and self.unknown == "skipped"))
            words.extend(boundaries)
            known.extend([True] * marks)
            counted.extend([self.boundary == "counted"] * marks)
            trained.extend([True] * marks)
            if opened is not None:
                log_within.extend([0.0] * marks)
                string_counts.extend([-1] * marks)
        strings = Strings(np.array(log_within), np.array(string_counts, np.int64))
        return EncodedText(
            np.array(words, np.int32),
            np.frombuffer(known, bool),
            np.frombuffer(counted, bool),
            np.array(starts, np.int64),
            np.frombuffer(trained, bool),
            None if opened is None else strings,
        )

    def _encode_shards(self, corpus: ShardedCorpus, lexicon: Lexicon) -> EncodedText:
        """`encode` of a text that is not held in memory."""
        if self.open_classes:
            raise UserError(
                f"{corpus.name} is encoded text, whose strings are not looked at one by one: leave "
                "vocabulary.open_classes out, or give the text itself."
            )
        if self.unknown == "refused" and not all(
            map(lexicon.ids.__contains__, corpus.token_counts())
        ):
            raise self._refusal(corpus, lexicon)
        return sharded.encode(
            corpus,
            lexicon.ids,
            UNKNOWN,
            self.unknown != "skipped",
            lexicon.boundary_id if self.boundary != "none" else None,
            self.boundary_marks,
            self.boundary == "counted",
        )


@functools.lru_cache(maxsize=2)
def _open_words(lexicon, classes):
    return OpenWords.within(lexicon, classes)


def _way(word, opened):
    """(its id or None, log p of the string in its class, its count, or -1 if it is of none)."""
    way = opened.way(word)
    if way is None:
        return None, 0.0, -1
    return *way, opened.lexicon.left_out.get(word, 0) if way[0] >= opened.class_ids[0] else -1
