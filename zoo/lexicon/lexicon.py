"""All data that is fixed for each word: spellings, counts, features, background.

The `Lexicon` lives on the host and is kept with a run. `Lexicon.tables` gives the arrays for the
device as a pytree, which is passed as an argument to every jitted function, never closed over.

Signatures. Words with the same feature set share every feature score, so the vocabulary of V words
is grouped into its S distinct feature sets, the signatures: see zoo.lexicon.feature_signatures.
"""

import collections
import dataclasses
import functools
import itertools
import numbers
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.errors import UserError, quote
from zoo.lexicon import feature_signatures, fields

# Attributes of tokenizers for the token between texts, in the order in which they are tried.
BOUNDARIES = ("eos_token", "sep_token")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Lexicon:
    """The words, with counts, features and a background.

    Fields that do not fit each other raise TypeError or ValueError: see `zoo.lexicon.fields`.

    Attributes:
      words: spellings, no two alike; a word's id is its position.
      counts: int64 [V], occurrences in the training text; all 0 if that text is not known.
      feature_names: names of the F features; empty if words have none.
      feature_offsets: int64 [V + 1]; word v has features feature_ids[offsets[v]:offsets[v + 1]].
      feature_ids: int32, rising within a word.
      feature_values: float32, as many; 1 if binary.
      log_background: float64 [V], log b(v) in nats, or None for a uniform one.
      unknown: the word that stands for words outside the lexicon, or None.
      boundary: the word that stands between sentences, or None.
      background_tables: {name: array}, the arrays of a contextual background's `prepare`.
      alphabet: the characters that have a letter of their own; None for the characters of the
        words. A lexicon that replaces another one after training has its alphabet.
      left_out: {word: occurrences} of words of the training text that are not in the lexicon. No
        model depends on them; they distinguish words never seen from words read as `<unk>`.
      fused: {surface form: the words that the training text has in its place}, see `data.Corpus`.

    Example:
      >>> lexicon = Lexicon(("<unk>", "the", "cat"), np.array([1, 3, 2]), unknown="<unk>")
      >>> lexicon.ids["cat"], lexicon.encode(["the", "dog"]).tolist()
      (2, [1, 0])
    """

    words: tuple[str, ...]
    counts: np.ndarray
    feature_names: tuple[str, ...] = ()
    feature_offsets: np.ndarray | None = None
    feature_ids: np.ndarray | None = None
    feature_values: np.ndarray | None = None
    log_background: np.ndarray | None = None
    unknown: str | None = None
    boundary: str | None = None
    background_tables: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    alphabet: tuple[str, ...] | None = None
    left_out: dict[str, int] = dataclasses.field(default_factory=dict)
    fused: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        fields.check(self)

    def __len__(self):
        return len(self.words)

    def __repr__(self):
        parts = [f"{len(self):,} words: {quote(list(self.words[:4]), 3)}"]
        if self.feature_names:
            parts.append(f"{len(self.feature_names):,} features")
        if self.log_background is not None:
            parts.append("a background")
        marks = {"unknown": self.unknown, "boundary": self.boundary}
        parts += [f"{name} {mark!r}" for name, mark in marks.items() if mark is not None]
        return f"Lexicon({'; '.join(parts)})"

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: word_id for word_id, word in enumerate(self.words)}

    @property
    def boundary_id(self) -> int | None:
        """The id of the boundary; None if there is none."""
        return None if self.boundary is None else self.ids[self.boundary]

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown word; None if there is none."""
        return None if self.unknown is None else self.ids[self.unknown]

    @functools.cached_property
    def has_counts(self) -> bool:
        """Whether the counts are known: not all of them are 0."""
        return bool(self.counts.any())

    @functools.cached_property
    def letters(self) -> tuple[str, ...]:
        """The alphabet, in the order of code points unless it was given."""
        if self.alphabet is not None:
            return self.alphabet
        marks = (self.unknown, self.boundary)
        return tuple(sorted(set().union(*(word for word in self.words if word not in marks))))

    @property
    def background_log_probs(self) -> np.ndarray:
        """log b(v) of every word, float64 [V], nats; uniform without a `log_background`."""
        if self.log_background is not None:
            return self.log_background
        return np.full(len(self), -np.log(len(self)))

    @functools.cached_property
    def is_character_level(self) -> bool:
        """Whether the words are characters, blanks among them."""
        return any(not word.strip() for word in self.words)

    def occurrences(self, words: tuple[str, ...]) -> np.ndarray:
        """Returns the occurrences of words in the training text, int64 [n]."""
        counts = [
            self.counts[self.ids[word]] if word in self.ids else self.left_out.get(word, 0)
            for word in words
        ]
        return np.array(counts, np.int64)

    def fused_note(self, unknown: Iterable[str]) -> str | None:
        """Returns a note on the out-of-vocabulary words that are fused forms; None without any."""
        forms = [word for word in unknown if word in self.fused and word not in self.ids]
        if not forms:
            return None
        first = forms[0]
        return (
            f"{quote(forms, 3)}: fused forms, which the training text has as separate words "
            f"({first!r} as {' '.join(self.fused[first])!r}): for text as it is written train with "
            "data.fused=surface"
        )

    def features_of(self, word: int) -> dict[str, float]:
        """Returns {name: value} of the features of a word, given by its id."""
        if not self.feature_names:
            return {}
        ids, values = self._features()[word]
        return dict(zip((self.feature_names[f] for f in ids), values.tolist(), strict=True))

    def _features(self) -> feature_signatures.FeatureSets:
        """Returns the features of each word of a lexicon with features."""
        offsets, ids, values = self.feature_offsets, self.feature_ids, self.feature_values
        assert offsets is not None and ids is not None and values is not None
        # Files may have any type of integers: sums of unsigned ones wrap.
        offsets, ids = offsets.astype(np.int64, copy=False), ids.astype(np.int32, copy=False)
        return feature_signatures.FeatureSets(offsets, ids, values)

    def check_same_features(self, new_lexicon: "Lexicon"):
        """Raises UserError unless both lexicons have the same names of features."""
        if self.feature_names != new_lexicon.feature_names:
            raise UserError(
                "the words of the other lexicon do not have the features of training: give them "
                "the same features, as Vocabulary.extended does."
            )

    def select_words(self, words: tuple[str, ...]) -> "Lexicon":
        """Returns the lexicon of some words of this one, in the given order.

        The new lexicon has only the marks that are among the words.

        Raises:
          ValueError: a word is not in this lexicon.
        """
        missing = [word for word in words if word not in self.ids]
        if missing:
            raise ValueError(f"{quote(missing, 3)}: not in the lexicon, so leave them out")
        word_ids = np.array([self.ids[word] for word in words])
        changes: dict[str, Any] = {"words": tuple(words), "counts": self.counts[word_ids]}
        for name in ("unknown", "boundary"):
            if getattr(self, name) not in words:
                changes[name] = None
        if self.log_background is not None:
            changes["log_background"] = self.log_background[word_ids]
        if self.feature_names:
            features = self._features().select(word_ids)
            for name in ("offsets", "ids", "values"):
                changes[f"feature_{name}"] = getattr(features, name)
        return dataclasses.replace(self, **changes)

    def with_words(self, words: tuple[str, ...], counts: np.ndarray) -> "Lexicon":
        """Returns the lexicon with other words (its marks among them), without their features."""
        cleared: dict[str, Any] = dict.fromkeys(
            ("feature_offsets", "feature_ids", "feature_values", "log_background")
        )
        return dataclasses.replace(self, words=words, counts=counts, feature_names=(), **cleared)

    def with_kinds(self, kinds: tuple[str, ...]) -> "Lexicon":
        """Returns the lexicon with the features of some kinds only.

        Raises:
          UserError: no feature has one of the kinds.
        """
        if not kinds:
            return self
        kind_of = [name.partition(":")[0] for name in self.feature_names]
        for kind in kinds:
            if kind not in kind_of:
                raise UserError(
                    f"no word has a feature of the kind {kind!r}: the lexicon has the kinds "
                    f"{', '.join(dict.fromkeys(kind_of)) or '(none)'}."
                )
        is_selected = np.isin(kind_of, kinds)
        words = self._features()
        is_selected_entry = is_selected[words.ids]
        counts = np.concatenate([[0], np.cumsum(is_selected_entry)])
        return dataclasses.replace(
            self,
            feature_names=tuple(np.array(self.feature_names, object)[is_selected]),
            feature_offsets=counts[words.offsets],
            feature_ids=(np.cumsum(is_selected) - 1)[words.ids[is_selected_entry]].astype(np.int32),
            feature_values=words.values[is_selected_entry],
        )

    @functools.cached_property
    def signatures(self) -> tuple[np.ndarray, feature_signatures.FeatureSets]:
        """(signature of each word, int32 [V]; (feature ids, values) of each signature)."""
        return feature_signatures.group_words(self._features())

    def tables(self, form: feature_signatures.Form | None = None) -> dict[str, jax.Array]:
        """Makes the arrays for the device; see `zoo.lexicon.feature_signatures.tables`."""
        if not self.feature_names:
            return {}
        return jax.tree.map(jnp.asarray, feature_signatures.tables(self, form))

    @functools.cached_property
    def signature_form(self) -> feature_signatures.Form:
        """The cheapest form of the features, by `zoo.lexicon.feature_signatures`."""
        return feature_signatures.choose_form(self)

    def encode(self, words: Iterable[str]) -> np.ndarray:
        """Returns the ids of words, int32 [n]; out-of-vocabulary words get the unknown word's id.

        Args:
          words: n words.

        Raises:
          ValueError: a word is not in the lexicon, and the lexicon has no unknown word.
        """
        words = list(words)
        ids = [self.ids.get(word, self.unknown_id) for word in words]
        if None in ids:
            raise ValueError(
                f"{words[ids.index(None)]!r} is not in the lexicon, which has no unknown word: "
                "make the lexicon with unknown='<unk>', or leave the word out"
            )
        return np.array(ids, np.int32)

    def words_digest(self) -> str:
        """Computes a hash of the words and their order."""
        return fields.digest(self.words)

    def words_set_digest(self) -> str:
        """Computes a hash of the set of words and of the marks, whatever the order of words.

        Equal hashes mean that probabilities are over the same words.
        """
        return fields.digest([sorted(self.words), (self.unknown, self.boundary)])

    def digest(self) -> str:
        """Computes a hash of everything in the lexicon on which a model depends."""
        return fields.digest(fields.arrays(self))

    def save(self, path: str | pathlib.Path):
        """Writes the lexicon to one .npz file."""
        fields.save(self, path)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        unknown: str | None = None,
        boundary: str | None = None,
        minimum_count: int = 1,
        maximum_size: int = 0,
    ) -> "Lexicon":
        """Makes a lexicon from word counts: the marks, then the words by falling counts.

        Words of equal count stay in the order of `counts`.

        Args:
          counts: {word: occurrences in the training text}, such as a `collections.Counter`.
          unknown: the word that stands for out-of-vocabulary words; its count includes the words
            that are left out. None for no such word.
          boundary: the word between sentences, with a count of 0 if `counts` does not have it; None
            for no such word.
          minimum_count: rarer words are left out.
          maximum_size: the largest number of words, the marks among them; 0 for no limit.

        Raises:
          ValueError: a count is not a whole number, or a count or a limit is below 0.

        Example:
          >>> words = Lexicon.from_counts({"cat": 2, "sat": 1, "the": 5}, unknown="<unk>",
          ...                             minimum_count=2)
          >>> words.words, words.counts.tolist(), words.encode(["the", "dog"]).tolist()
          (('<unk>', 'the', 'cat'), [1, 5, 2], [1, 0])
        """
        for word, count in counts.items():
            if not isinstance(count, numbers.Integral) or count < 0:
                raise ValueError(
                    f"counts has {count!r} for {word!r}: give whole numbers, at least 0"
                )
        for name, limit in {"minimum_count": minimum_count, "maximum_size": maximum_size}.items():
            if limit < 0:
                raise ValueError(f"{name} is {limit}: give at least 0")
        marks = [mark for mark in (boundary, unknown) if mark is not None]
        tokens = collections.Counter({word: n for word, n in counts.items() if word not in marks})
        types = [word for word, count in tokens.most_common() if count >= minimum_count]
        if maximum_size:
            types = types[: max(0, maximum_size - len(marks))]
        words = (*marks, *types)
        excluded = {word: int(tokens[word]) for word in tokens.keys() - set(types) if tokens[word]}
        occurrences = np.array([counts.get(word, 0) for word in words], np.int64)
        if unknown is not None:
            occurrences[len(marks) - 1] += sum(excluded.values())
        return cls(
            words=words, counts=occurrences, unknown=unknown, boundary=boundary, left_out=excluded
        )

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        *,
        counts: Sequence[int] | np.ndarray | None = None,
        unknown: str | None = None,
        boundary: str | None = None,
    ) -> "Lexicon":
        """Makes a lexicon of a tokenizer's tokens, special ones among them, with the same ids.

        An id without a token becomes a word such as "<id 7>".

        Args:
          tokenizer: of the libraries `tokenizers` or `transformers`, or any object with
            `get_vocab() -> {token: id}`.
          counts: int [V], occurrences of each id in training: np.bincount(ids, minlength=V). Heads
            and noise distributions by frequency need them; None for 0 of each.
          unknown: the token for text outside the vocabulary; None for the tokenizer's `unk_token`,
            if it has one.
          boundary: the token between texts; None for the tokenizer's `eos_token` or `sep_token`, if
            it has one.

        Raises:
          ValueError: two tokens have the same id, an id is below 0, or `counts` does not have V
            items.
        """
        vocabulary = tokenizer.get_vocab()
        tokens: dict[int, str] = {}
        for token, token_id in vocabulary.items():
            if token_id < 0:
                raise ValueError(
                    f"the tokenizer has {token!r} with the id {token_id}: ids must be at least 0"
                )
            if tokens.setdefault(token_id, token) != token:
                raise ValueError(
                    f"the tokenizer has the tokens {tokens[token_id]!r} and {token!r} with the "
                    f"same id, {token_id}"
                )
        size = 1 + max(tokens, default=-1)
        numbered = tuple(tokens.get(token_id, f"<id {token_id}>") for token_id in range(size))
        occurrences = np.zeros(size, np.int64) if counts is None else np.asarray(counts)
        if occurrences.shape != (size,):
            raise ValueError(
                f"counts has the shape {occurrences.shape}, and the tokenizer {size:,} ids: give "
                "an occurrence count for each, as np.bincount(ids, minlength=...) does"
            )
        if unknown is None:
            unknown = _special(tokenizer, ("unk_token",), vocabulary)
        if boundary is None:
            boundary = _special(tokenizer, BOUNDARIES, vocabulary)
        return cls(words=numbered, counts=occurrences, unknown=unknown, boundary=boundary)

    @classmethod
    def from_dataset(
        cls,
        dataset: Iterable[Mapping[str, Any]],
        column: str,
        *,
        split: Callable[[str], Iterable[str]] = str.split,
        unknown: str | None = "<unk>",
        boundary: str | None = "</s>",
        minimum_count: int = 1,
        maximum_size: int = 0,
    ) -> "Lexicon":
        """Makes a lexicon of the words in a column of a data set, by falling counts.

        Args:
          dataset: rows, each a dict by the names of columns: a `datasets.Dataset`, or a list.
          column: the name of the column of texts, or of lists of words.
          split: splits a text into words.
          unknown: see `from_counts`.
          boundary: counted once for each row; None for no such word.
          minimum_count: see `from_counts`.
          maximum_size: see `from_counts`.

        Raises:
          ValueError: a row does not have the column.
        """
        if hasattr(dataset, "select_columns"):  # the others need not be read
            dataset = dataset.select_columns([column])
        counts: collections.Counter = collections.Counter()
        for row in dataset:
            if column not in row:
                raise ValueError(f"the rows have no column {column!r}: {', '.join(row)}")
            text = row[column]
            counts.update(split(text) if isinstance(text, str) else text)
            if boundary is not None:
                counts[boundary] += 1
        return cls.from_counts(
            counts,
            unknown=unknown,
            boundary=boundary,
            minimum_count=minimum_count,
            maximum_size=maximum_size,
        )

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "Lexicon":
        """Reads the file of `save`.

        Args:
          path: the file.

        Raises:
          UserError: the file is missing, damaged, or not a lexicon.
        """
        return fields.load(cls, path)


def _special(tokenizer, names, vocabulary):
    """Returns the first special token of these names that the vocabulary has, or None."""
    # A tokenizer of `tokenizers` has the unknown token in its model.
    for owner in (tokenizer, getattr(tokenizer, "model", None)):
        for name in names:
            token = getattr(owner, name, None)
            if isinstance(token, str) and token in vocabulary:
                return token
    return None


def with_features(
    lexicon: Lexicon,
    features: list[dict[str, float]],
    log_background: np.ndarray | None = None,
    names: tuple[str, ...] | None = None,
) -> Lexicon:
    """Returns the lexicon with features of its words and a background.

    Args:
      lexicon: V words.
      features: V dicts {feature name: value}.
      log_background: float64 [V], log b of each word, nats; None for a uniform background.
      names: the features to keep, in the order of their parameters; all, sorted, if None.

    Raises:
      ValueError: there are more or fewer dicts than words, or a name is given twice.

    Example:
      >>> lexicon = Lexicon(words=("the", "cat"), counts=np.array([3, 2]))
      >>> known = with_features(lexicon, [{"POS:DET": 1}, {"POS:NOUN": 1, "Length": 3}])
      >>> known.feature_names, known.features_of(1)
      (('Length', 'POS:DET', 'POS:NOUN'), {'Length': 3.0, 'POS:NOUN': 1.0})
    """
    if len(features) != len(lexicon):
        raise ValueError(
            f"features has {len(features):,} dicts and the lexicon {len(lexicon):,} words: give "
            "one for each"
        )
    if names is None:
        names = tuple(sorted(set().union(*features)))
    id_by_name = {name: number for number, name in enumerate(names)}
    lengths = np.fromiter(map(len, features), np.int64, len(features))
    entry_ids = map(id_by_name.get, itertools.chain.from_iterable(features), itertools.repeat(-1))
    ids = np.fromiter(entry_ids, np.int64, lengths.sum())
    entry_values = itertools.chain.from_iterable(row.values() for row in features)
    values = np.fromiter(entry_values, np.float64, len(ids))
    rows = np.repeat(np.arange(len(features)), lengths)
    # Sorted by words, and by ids within a word; names that are not kept are left out.
    order = np.argsort(rows * (len(names) + 1) + ids, kind="stable")
    order = order[ids[order] >= 0]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows[order], minlength=len(features)))])
    return dataclasses.replace(
        lexicon,
        feature_names=tuple(names),
        feature_offsets=offsets,
        feature_ids=ids[order].astype(np.int32),
        feature_values=values[order].astype(np.float32),
        log_background=log_background,
    )


def frequency_tables(counts: np.ndarray) -> dict:
    """Ranks words by frequency; words of equal count stay in the order of the lexicon."""
    order = np.argsort(-np.asarray(counts), kind="stable").astype(np.int32)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return {"rank": jnp.asarray(rank), "word": jnp.asarray(order)}


# ---- words of another lexicon as words of a trained one: the same word, or a share of <unk>


class NoUnknownWord(LookupError):
    """A lexicon lacks a word (the argument) and has no unknown word to stand for it."""


class Shares(NamedTuple):
    """The trained words that stand for the words of another lexicon, with shares of probability."""

    word_ids: np.ndarray  # int32 [V], the trained word that stands for each word
    # float32 [V], log of the word's share of the trained word's probability, nats
    log_share: np.ndarray
    # bool [V], whether the word shares the unknown word's probability with others
    shared: np.ndarray


def shares(trained: Lexicon, new_lexicon: Lexicon) -> Shares:
    """Finds the trained word that stands for each word of another lexicon; marks stand for marks.

    The unknown word and the new words have even shares of its probability.
    """
    unknown = None if trained.unknown is None else trained.ids.get(trained.unknown)
    marks = {new_lexicon.unknown: trained.unknown, new_lexicon.boundary: trained.boundary}
    names = [marks.get(word) or word for word in new_lexicon.words]
    word_ids = np.array([trained.ids.get(name, -1) for name in names], np.int32)
    if unknown is None and (word_ids < 0).any():
        raise NoUnknownWord(new_lexicon.words[int(np.argmin(word_ids))])
    shared = (word_ids < 0) | (word_ids == (-1 if unknown is None else unknown))
    word_ids = np.where(shared, 0 if unknown is None else unknown, word_ids).astype(np.int32)
    log_share = np.where(shared, -np.log(max(shared.sum(), 1)), 0).astype(np.float32)
    return Shares(word_ids, log_share, shared)
