"""Vocabularies: case, out-of-vocabulary words, boundaries, and features of words."""

import collections
import dataclasses
import functools
import itertools
import logging
import operator
from collections.abc import Iterable, Sequence

import numpy as np

from zoo import lexicon as lexicons
from zoo.base.arrays import memory
from zoo.data import text_notes
from zoo.data.encoded_text import EncodedText, Layout, Strings
from zoo.data.open_words import OpenWords, Subwords, learn_subwords
from zoo.errors import UserError, check_choices, check_least, quote
from zoo.lexicon import Lexicon
from zoo.priors import Background, FeaturePrior
from zoo.priors.prior import Contextual, check_background, check_features, token_counts
from zoo.priors.strings import StringClass
from zoo.sources.mapped_text import Mapped
from zoo.sources.source import Corpus, Counted, Source

logger = logging.getLogger(__name__)
UNKNOWN = "<unk>"
BOUNDARY = "</s>"


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """A recipe for a lexicon and for encoding text with it.

    Attributes:
      splits: words are taken from these splits; all splits if empty.
      minimum_count: the least count of a word in these splits.
      maximum_size: the most frequent words up to this number are kept; 0 for no limit. Words of
        the source's own dictionary are always kept.
      lower_case: whether text is converted to lower case.
      unknown: out-of-vocabulary words are "refused" (an error names them), "counted" (read as
        `<unk>` and counted in perplexities) or "skipped" (read as `<unk>` and not counted).
      boundary: "counted" (`</s>` after each sentence, predicted and counted), "uncounted"
        (predicted and trained, but left out of perplexities) or "none" (no boundary between
        sentences).
      boundary_marks: the number of boundaries after each sentence.
      features: priors that give the features of words, for heads and embeddings with features. A
        word has the features of all priors; if two give the same feature, the later value counts.
      background: the prior probabilities of words; it needs `features`.
      open_classes: classes of strings. The lexicon has a word for each class, which stands for the
        strings of the class that are not words: these are not out of vocabulary, and perplexities
        count the probability of the string itself. A string may be in one class only. See
        zoo.data.open_words.
      subwords: the greatest number of pieces into which words are split, at least 1, learnt on the
        words that `minimum_count` and `maximum_size` keep; all their letters are pieces, also if
        they are more. For translations alone, without features or open classes. The
        probability of a word is the product over its pieces. None: words are not split. Needs the
        package `tokenizers`; see zoo.data.open_words.

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
    subwords: int | None = None

    def __post_init__(self):
        check_least(self, "vocabulary", minimum_count=1, maximum_size=0, boundary_marks=1)
        check_choices(
            self,
            "vocabulary",
            unknown=("refused", "counted", "skipped"),
            boundary=("counted", "uncounted", "none"),
        )
        if self.subwords is not None:
            check_least(self, "vocabulary", subwords=1)
        for kind, rival in itertools.combinations(self.open_classes, 2):
            if not kind.is_disjoint(rival):
                raise UserError(
                    f"vocabulary.open_classes has {kind.name} and {rival.name}, which have strings "
                    "in common: give lengths or first letters that separate them, or one class."
                )

    def read(self, source: Source, split: str) -> Corpus:
        """Reads a split of a source, in lower case if `lower_case` is set."""
        corpus = source.read(split)
        return corpus.lower_cased() if self.lower_case else corpus

    def build(self, source: Source) -> tuple[Lexicon, dict[str, Corpus]]:
        """Reads the corpora of a source and builds (the lexicon, {split: Corpus} of all splits).

        Raises:
          UserError: there is a background, or a class of strings, without features; the boundary
            marks do not fit the memory; or a prior raises it.
        """
        # Not in __post_init__, for --set changes background and features one after the other.
        if self.background is not None and not self.features:
            raise UserError(
                f"vocabulary.background is {self.background}, but no head uses a background "
                "without features: set vocabulary.features, or vocabulary.background=none."
            )
        if self.open_classes and not self.features:
            raise UserError(
                f"vocabulary.open_classes has {self.open_classes[0].name}, which needs features: "
                "set vocabulary.features."
            )
        memory.check_fields(self, "vocabulary", boundary_marks=4)  # int32, of one sentence
        corpora = {split: self.read(source, split) for split in source.splits()}
        entries = self._entries(source)

        marks = [BOUNDARY] if self.boundary != "none" else []
        marks += [UNKNOWN] if self.unknown != "refused" else []
        counts = token_counts(corpora, self.splits)
        held_out = (text.token_counts() for split, text in corpora.items() if split != "train")
        text_notes.warn(counts, source.form.language)
        text_notes.warn_of_forms(dict.fromkeys(itertools.chain(counts, *held_out)))
        frequent = [
            word
            for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            if count >= self.minimum_count and word not in marks
        ][: self.maximum_size or None]
        if self.subwords is not None:
            pieces = learn_subwords({word: counts[word] for word in frequent}, self.subwords)
            frequent = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
        types = {*frequent, *marks}  # a dictionary may have the marks, too
        words = (*marks, *frequent, *sorted(word for word in entries if word not in types))

        types = set(words)
        text_counts = token_counts(corpora, ("train",)) if self.splits != ("train",) else counts
        # As the model sees the text, so that background and frequency bands include the marks.
        train: collections.Counter = collections.Counter()
        unsplit = types if self.subwords is None else set()  # words that are not split
        split = Subwords(types, marks).split if self.subwords is not None else lambda word: (word,)
        for word, count in text_counts.items():
            for token in split(word):
                train[token if token in types else UNKNOWN] += count
        if self.boundary != "none":
            train[BOUNDARY] += self.boundary_marks * len(corpora["train"].sentences)
        lexicon = Lexicon(
            words=words,
            counts=np.array([train[word] for word in words], np.int64),
            unknown=UNKNOWN if UNKNOWN in words else None,
            # Not by looking for </s> in words: the text itself may have it.
            boundary=BOUNDARY if self.boundary != "none" else None,
            left_out={word: n for word, n in sorted(text_counts.items()) if word not in unsplit},
            fused=corpora["train"].fused,
        )
        if self.features:
            texts = {split: self._mark_unknown(corpus, types) for split, corpus in corpora.items()}
            lexicon = add_priors(lexicon, self.features, self.background, texts, entries)
        if self.open_classes:
            lexicon = self._add_classes(lexicon)
        self._warn_of_untrained(lexicon, corpora)
        return lexicon, corpora

    def _warn_of_untrained(self, lexicon, corpora):
        """Logs a warning if <unk> is counted in a held-out text and never occurs in training."""
        if self.unknown != "counted" or lexicon.counts[lexicon.ids[UNKNOWN]]:
            return
        for split, corpus in corpora.items():
            unknown = [*self.missing(corpus.sentences, lexicon)] if split != "train" else []
            if unknown:
                logger.warning(
                    "every word of the training text is in the lexicon, so <unk> is never trained, "
                    "and words of %s such as %s are read as <unk>: its probability means "
                    "nothing; set vocabulary.minimum_count=2, or vocabulary.unknown=skipped",
                    split,
                    quote(unknown, 3),
                )
                return

    def _add_classes(self, lexicon):
        """Adds a word for each class of strings, with the strings' count, which <unk> loses."""
        opened = OpenWords.from_lexicon(lexicon, self.open_classes)
        counts = opened.lexicon.counts.copy()
        for word, count in lexicon.left_out.items():
            word_id = opened.class_of(word)
            if word_id is not None:
                counts[word_id] += count
                if lexicon.unknown is not None:
                    counts[lexicon.ids[lexicon.unknown]] -= count
        return dataclasses.replace(opened.lexicon, counts=counts)

    def open_words(self, lexicon: Lexicon) -> OpenWords | None:
        """Returns the classes of strings of a lexicon that `build` made; None without any."""
        return _open_words(lexicon, self.open_classes) if self.open_classes else None

    def extended(self, source: Source, lexicon: Lexicon, new_words: tuple[str, ...]) -> Lexicon:
        """Adds words to a lexicon, for a model that was trained without them.

        New words get their features from the same priors; only features of the lexicon are kept,
        for other features do not have parameters. Words of the lexicon keep the features that the
        model was trained with, even if a prior's files or functions have changed. The background is
        estimated by the same recipe over all words.

        Raises:
          UserError: the lexicon does not have features, by which a new word could be represented,
            or it has classes of strings.
        """
        if self.open_classes:
            raise UserError(
                "strings outside the lexicon are words already (vocabulary.open_classes): evaluate "
                "the run without adding words."
            )
        if not lexicon.feature_names:
            raise UserError(
                "words can be added only to a lexicon with features: set vocabulary.features in "
                "the config and train again."
            )
        added = dict.fromkeys(map(str.lower, new_words) if self.lower_case else new_words)
        words = (*lexicon.words, *(word for word in added if word not in lexicon.ids))
        larger = lexicon.with_words(words, lexicon.occurrences(words))
        # Priors count in texts as the model was trained: words that were <unk> stay <unk>.
        texts = {
            split: self._mark_unknown(self.read(source, split), set(lexicon.words))
            for split in source.splits()
        }
        entries = self._entries(source)
        return add_priors(larger, self.features, self.background, texts, entries, lexicon)

    def _entries(self, source):
        """Returns {word: features} of the source's own dictionary, in the vocabulary's case."""
        lower = str.lower if self.lower_case else str
        entries: collections.defaultdict = collections.defaultdict(tuple)
        for word, features in source.lexicon_entries().items():
            entries[lower(word)] += features
        return entries

    def _mark_unknown(self, corpus: Corpus, words: set[str]) -> Corpus:
        """Puts <unk> and boundaries into a corpus; the tag of both is "POS:NIL"."""
        ends = [BOUNDARY] * self.boundary_marks if self.boundary != "none" else []
        arrays = corpus.arrays()
        spelled = (word if word in words else UNKNOWN for word in arrays.words)
        sentences = arrays.respelled(spelled, ends)
        if corpus.features is None:
            return dataclasses.replace(corpus, sentences=sentences)
        nil, features = ("POS:NIL",), []
        for columns in zip(sentences, corpus.sentences, corpus.features, strict=True):
            rows = zip(*columns, strict=False)
            features.append([tags if new_word == word else nil for new_word, word, tags in rows])
            features[-1] += [nil] * len(ends)
        return dataclasses.replace(corpus, sentences=sentences, features=features)

    def has(self, word: str, lexicon: Lexicon) -> bool:
        """Whether a word, or all its subwords, are in the lexicon, or one of its classes has it."""
        if self.subwords is not None:
            return _subwords(lexicon).split(word)[0] in lexicon.ids
        if not self.open_classes:
            return word in lexicon.ids
        return _open_words(lexicon, self.open_classes).class_of(word) is not None

    def words_of(self, tokens: Iterable[str], lexicon: Lexicon) -> list[tuple[str, list[str]]]:
        """Returns the words that tokens of a lexicon spell, each with its tokens."""
        if self.subwords is not None:
            return _subwords(lexicon).words_of(tokens)
        return [(token, [token]) for token in tokens]

    def missing(self, sentences: Iterable[list[str]], lexicon: Lexicon) -> dict[str, int]:
        """Counts the words of some sentences that a lexicon does not have, most frequent first."""
        counts = collections.Counter(word for sentence in sentences for word in sentence)
        return {word: count for word, count in counts.most_common() if not self.has(word, lexicon)}

    def _refusal(self, corpus, lexicon):
        words = [*self.missing(corpus.sentences, lexicon)]
        remedy = "" if self.open_classes else "give --add-words FILE, a file with them, "
        notes = filter(None, (lexicon.fused_note(words), *text_notes.form_notes(words, lexicon)))
        noted = "".join(f" ({note})" for note in notes)
        are, pronoun = ("words of {} are", "them") if len(words) > 1 else ("word of {} is", "it")
        return UserError(
            f"{len(words):,} distinct {are.format(corpus.name)} not in the lexicon: "
            f"{quote(words)}; leave {pronoun} out, {remedy}or train with vocabulary.unknown="
            f"counted or skipped{noted}."
        )

    def encode(self, corpus: Corpus, lexicon: Lexicon) -> EncodedText:
        """Encodes a corpus as word ids, with boundaries, and marks the words that are counted.

        Raises:
          UserError: a word is not in the lexicon, and `unknown` is "refused".
        """
        if self.subwords is not None:
            split = _subwords(lexicon).split
            pieces = [[*map(split, words)] for words in corpus.sentences]
            sentences_in_pieces = [[*itertools.chain.from_iterable(words)] for words in pieces]
            corpus = Corpus(corpus.name, sentences_in_pieces)
        sentences = corpus.arrays()
        is_mapped = isinstance(sentences.text, Mapped)
        if is_mapped and self.open_classes:
            raise UserError(
                f"{corpus.name} is encoded text, in which classes of strings cannot be found: "
                "leave vocabulary.open_classes out, or give the text itself."
            )
        has_boundary = lexicon.boundary is not None and self.boundary != "none"
        marks = self.boundary_marks if has_boundary else 0
        # Bytes of int32 ids after each sentence.
        memory.check_fields(self, "vocabulary", boundary_marks=8 + 4 * len(sentences))
        occurs = sentences.totals() > 0
        ids, strings = self._ids(sentences.words, lexicon)
        in_lexicon = (ids >= 0) | ~occurs
        unknown_id = -1 if lexicon.unknown_id is None else lexicon.unknown_id
        if not in_lexicon.all() and (self.unknown == "refused" or unknown_id < 0):
            raise self._refusal(corpus, lexicon)
        ids = np.where(ids >= 0, ids, max(unknown_id, 0)).astype(np.int32)
        # The text itself may have <unk>, as the Penn Treebank's language-modelling text.
        counted = (ids != unknown_id) | ~occurs | (self.unknown != "skipped")
        boundary = lexicon.boundary_id or 0
        if is_mapped:
            order, ends = np.array(sentences.numbers), self.boundary == "counted"
            tables = ids, in_lexicon, counted
            return Layout(sentences, *tables, boundary, marks, ends, order).text()
        lengths = sentences.lengths.astype(np.int64) + marks
        starts, size = np.cumsum(lengths) - lengths, int(lengths.sum())

        def placed(type_values, mark_value):
            if (type_values[occurs] == mark_value).all():  # takes no memory
                return np.broadcast_to(np.array(mark_value, type_values.dtype), size)
            values, done = np.full(size, mark_value, type_values.dtype), 0
            for first, after, block in sentences.blocks():
                shifts = marks * np.arange(first, after) - marks * sentences.numbers.start
                places = np.arange(done, done + len(block))
                places += np.repeat(shifts, sentences.text.lengths[first:after])
                values[places] = type_values[block]
                done += len(block)
            return values

        trained = np.broadcast_to(np.array(True), size)
        if corpus.prefixes:
            trained = np.arange(size) >= np.repeat(starts + corpus.prefixes, lengths)
        is_counted = placed(counted, self.boundary == "counted")
        return EncodedText(
            placed(ids, boundary),
            placed(in_lexicon, True),
            trained & is_counted if corpus.prefixes else is_counted,
            starts,
            trained,
            strings and Strings(placed(strings.log_within, 0.0), placed(strings.counts, -1)),
            items=None if corpus.items is None else starts[corpus.items],
        )

    def _ids(self, words: Sequence[str], lexicon: Lexicon) -> tuple[np.ndarray, Strings | None]:
        """Looks up words: (ids int32 [n], -1 for none; the strings of classes)."""
        if not self.open_classes:
            return np.array([lexicon.ids.get(word, -1) for word in words], np.int32), None
        opened = _open_words(lexicon, self.open_classes)
        encodings = [opened.encode(word) or (-1, 0.0) for word in words]
        ids = np.array([word_id for word_id, _ in encodings], np.int32)
        log_within = np.array([log_prob for _, log_prob in encodings], np.float64)
        counts = np.array([opened.lexicon.left_out.get(word, 0) for word in words], np.int64)
        return ids, Strings(log_within, np.where(ids >= opened.class_ids[0], counts, -1))


_open_words = functools.lru_cache(maxsize=2)(OpenWords.restore)


@functools.lru_cache(maxsize=4)
def _subwords(lexicon):
    return Subwords(lexicon.words, (lexicon.unknown, lexicon.boundary))


# ----- features and backgrounds for a lexicon of the user's own, without a source or a run


def with_priors(
    lexicon: Lexicon,
    features: Sequence[FeaturePrior],
    background: Background | None = None,
    *,
    sentences: Iterable[Sequence[str]] | None = None,
) -> Lexicon:
    """Adds the features of priors, and a background, to a lexicon.

    Args:
      lexicon: the words.
      features: priors that give the features of words, such as (priors.TopWords(1000),
        priors.Affixes()).
      background: the prior probabilities of words, such as priors.Unigram(); None: uniform.
      sentences: training text, in which priors count words; None: they use the lexicon's counts.

    Raises:
      UserError: a prior raises it, for instance because there is nothing to count.

    Example:
      >>> words = Lexicon.from_counts({"the": 5, "cat": 2, "sat": 1})
      >>> data.with_priors(words, (priors.TopWords(1),), priors.Unigram()).features_of(1)
      {'Word:@not_top': 1.0}
    """
    if sentences is None:
        counts = collections.Counter(dict(zip(lexicon.words, lexicon.counts.tolist(), strict=True)))
        corpus: Corpus = Counted("the lexicon", [list(lexicon.words)], counts=counts)
    else:
        encoded = encode(lexicon, sentences)
        parts = np.split(encoded.words, encoded.starts[1:])
        corpus = Corpus("sentences", [[lexicon.words[word] for word in ids] for ids in parts])
    return add_priors(lexicon, features, background, {"train": corpus}, {})


def add_priors(lexicon, features, background, corpora, entries, trained=None) -> Lexicon:
    """Adds features and a background to a lexicon, estimated on corpora as a model sees them."""
    words = lexicon.words
    parts = [prior.features(words, corpora, entries) for prior in features]
    for prior, part in zip(features, parts, strict=True):
        check_features(prior, words, part)
    word_features = [functools.reduce(operator.or_, word) for word in zip(*parts, strict=True)]
    names = None
    if trained is not None:
        names = trained.feature_names
        word_features[: len(trained)] = map(trained.features_of, range(len(trained)))
    log_background = None
    if background is not None:
        log_background = np.asarray(background.log_probs(words, corpora), np.float64)
        check_background(background, words, log_background)
    return lexicons.with_features(lexicon, word_features, log_background, names)


def with_background(
    lexicon: Lexicon, background: Contextual, sentences: Iterable[Sequence[str]]
) -> Lexicon:
    """Adds the tables of a contextual background, estimated on text or read, to a lexicon.

    Args:
      lexicon: the words.
      background: the background of a head, such as priors.KneserNey(order=3).
      sentences: sentences of the background's training text, without boundaries, which are added
        if the lexicon has a boundary word.

    Raises:
      ValueError: a word is not in the lexicon, and the lexicon does not have an unknown word.

    Example:
      >>> from zoo import heads
      >>> text = [["the", "cat", "sat"], ["the", "cat"]]
      >>> head = heads.LogLinear(background=priors.KneserNey(order=2))
      >>> words = Lexicon.from_counts({"the": 2, "cat": 2, "sat": 1}, boundary="</s>")
      >>> known = data.with_background(words, head.background, text)
      >>> sorted(known.background_tables)[:2]
      ['backoff', 'levels']
    """
    text = encode(lexicon, sentences)
    prepared = background.prepare(lexicon, dict.fromkeys(background.splits, text))
    return dataclasses.replace(lexicon, background_tables=prepared)


def encode(lexicon: Lexicon, sentences: Iterable[Sequence[str]]) -> EncodedText:
    """Encodes sentences as word ids, with a boundary after each if the lexicon has one."""
    end = [] if lexicon.boundary is None else [lexicon.boundary]
    id_lists = [lexicon.encode([*sentence, *end]) for sentence in sentences]
    lengths = np.array([len(ids) for ids in id_lists], np.int64)
    words = np.concatenate([np.zeros(0, np.int32), *id_lists])
    is_known = np.ones(len(words), bool)
    return EncodedText(words, is_known, is_known, np.cumsum(lengths) - lengths)
