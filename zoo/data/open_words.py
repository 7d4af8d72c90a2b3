"""Open vocabularies: words that stand for classes of strings, and words in subwords.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 4, "Infinite domains". All strings of a class c
(numbers of some length, names) have the same features phi_c. The class's background mass B(c) is
finite although it has infinitely many strings, and Z needs only this mass:

    p(x | h) = sum_c p(c | h) b(x | c),    p(c | h) proportional to B(c) exp(a . phi_c).

So the lexicon gets one more word a class, with the class's features and share of the background,
and the head (heads.LogLinear, or any other) gives p(c | h) as it gives the probability of any
word. Words of the lexicon are excluded from the classes:

    b(x | c) = m_c(x) / (1 - sum over words v of the lexicon of m_c(v)) for x outside the lexicon,

where m_c is the distribution of the class over strings. The probabilities of all words of the
lexicon and all strings outside it sum to 1.
"""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from zoo import lexicon as lexicons
from zoo.base import lazy
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors.spelling_features import NOT_TOP
from zoo.priors.strings import StringClass

# The least mass of a class outside the lexicon: with less, drawing a string there never ends.
LEAST_OUTSIDE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class OpenWords:
    """A lexicon with classes of strings outside it."""

    lexicon: Lexicon
    distributions: tuple
    log_outside: np.ndarray  # float64 [C], log of each class's mass on strings outside the lexicon

    @classmethod
    def from_lexicon(cls, lexicon: Lexicon, classes: tuple[StringClass, ...]) -> "OpenWords":
        """Adds a word for each class to a lexicon, and scales the background of its words."""
        _check(lexicon, classes)
        features = [lexicon.features_of(word) for word in range(len(lexicon))]
        log_background = lexicon.background_log_probs
        shares = np.array([kind.share for kind in classes])
        log_background = np.concatenate([log_background + np.log1p(-shares.sum()), np.log(shares)])
        features += [dict.fromkeys(kind.features, 1.0) for kind in classes]
        larger = lexicon.with_words(
            (*lexicon.words, *(kind.name for kind in classes)),
            np.concatenate([lexicon.counts, np.zeros(len(classes), np.int64)]),
        )
        larger = lexicons.with_features(larger, features, log_background, lexicon.feature_names)
        return cls.restore(larger, classes)

    @classmethod
    def restore(cls, lexicon: Lexicon, classes: tuple[StringClass, ...]) -> "OpenWords":
        """Returns the open words of a lexicon that `OpenWords.from_lexicon` made."""
        words = lexicon.words[: len(lexicon) - len(classes)]
        marks = (lexicon.unknown, lexicon.boundary)
        spelled = {w: lexicon.features_of(n) for n, w in enumerate(words) if w not in marks}
        distributions, inside = [], []
        for kind in classes:
            members = [w for w, features in spelled.items() if features.keys() >= {*kind.features}]
            distribution = kind.fit(members)
            mass = math.fsum(math.exp(distribution.log_prob(word)) for word in words)
            if 1 - mass < LEAST_OUTSIDE:
                raise UserError(
                    f"all strings of {kind.name}, or nearly all, are words of the lexicon: leave "
                    "the class out, or allow longer strings."
                )
            distributions.append(distribution)
            inside.append(mass)
        return cls(lexicon, tuple(distributions), np.log1p(-np.array(inside)))

    @functools.cached_property
    def class_ids(self) -> np.ndarray:
        return np.arange(len(self.lexicon) - len(self.distributions), len(self.lexicon))

    def _is_word(self, string):
        return self.lexicon.ids.get(string, len(self.lexicon)) < self.class_ids[0]

    def log_within(self, string: str) -> np.ndarray:
        """Computes log b(string | c) for each class, float64 [C], nats."""
        if self._is_word(string):
            return np.full(len(self.distributions), -np.inf)
        log_probs = [distribution.log_prob(string) for distribution in self.distributions]
        return np.array(log_probs) - self.log_outside

    def class_of(self, string: str) -> int | None:
        """Returns the word id of a string in training; see `encode`. None if no class has it."""
        encoding = self.encode(string)
        return None if encoding is None else encoding[0]

    def encode(self, string: str) -> tuple[int, float] | None:
        """Returns (word id, 0), or the likeliest class's (id, log b(string | class)); else None."""
        if self._is_word(string):
            return self.lexicon.ids[string], 0.0
        within = self.log_within(string)
        likeliest = int(np.argmax(within))
        if not np.isfinite(within[likeliest]):
            return None
        return int(self.class_ids[likeliest]), within[likeliest]

    def candidates(self, strings) -> tuple[np.ndarray, np.ndarray]:
        """Returns (ids, log b(string | id)) of the words and classes that may generate strings."""
        log_within = np.stack([self.log_within(string) for string in strings])
        ids = np.tile(self.class_ids, (len(strings), 1))
        for row, string in enumerate(strings):
            if self._is_word(string):
                ids[row, 0], log_within[row, 0] = self.lexicon.ids[string], 0
        return ids.astype(np.int32), log_within

    def spelled(self, word: int, generator) -> str:
        """Returns the word of an id, or a string drawn from the class of that id."""
        if word < self.class_ids[0]:
            return self.lexicon.words[word]
        distribution = self.distributions[word - self.class_ids[0]]
        while True:  # rejection sampling of b(x | c)
            string = distribution.sample(generator)
            if not self._is_word(string):
                return string


def log_prob(head, params, tables, hidden, ids, log_within):
    """Computes log p(string | hidden) = log sum_c p(c | hidden) b(string | c), nats, [N]."""
    repeated = jnp.broadcast_to(hidden[:, None], (*ids.shape, hidden.shape[-1]))
    class_log_probs = head.log_prob(params, tables, repeated, ids)
    return jax.nn.logsumexp(class_log_probs + log_within.astype(class_log_probs.dtype), axis=-1)


def _check(lexicon, classes):
    if not classes:
        raise UserError("an open lexicon needs classes of strings: give at least one.")
    if sum(kind.share for kind in classes) >= 1:
        raise UserError("the shares of the classes sum to 1 or more: leave some to the words.")
    names = [kind.name for kind in classes]
    for kind in classes:
        if kind.name in lexicon.ids or names.count(kind.name) > 1:
            raise UserError(f"{kind.name} is already a word or a class: give another name.")
        for feature in kind.features:
            if feature not in lexicon.feature_names:
                if feature == NOT_TOP:
                    fix = f"give TopWords a count below {len(lexicon):,}, the size of the lexicon"
                else:
                    fix = "add the prior that gives it to vocabulary.features, or leave it out"
                raise UserError(
                    f"{kind.name} has the feature {feature!r}, which no word of the lexicon has, "
                    f"so that its parameters could not be learnt: {fix}."
                )


# ---------- subwords: a frequent word is one piece, a rare word several, and hardly any is unknown
# Pieces are learnt as by Sennrich, Haddow and Birch, "Neural machine translation of rare words with
# subword units" (2016): words are spelled in letters, and the most frequent pair of neighbours is
# merged, again and again. A word is split from its left end into the longest pieces of the lexicon,
# as in section 4.1 of Wu et al., "Google's neural machine translation system" (2016), so that the
# lexicon alone determines its pieces. As in SentencePiece, the first piece begins with a mark:
#
#     un chiot noir  ->  ▁un ▁chi ot ▁noir

MARK = "▁"


class Subwords:
    """Words as sequences of pieces; marks, such as the boundary, are not split."""

    def __init__(self, pieces: Iterable[str], marks: Iterable[str | None] = ()):
        with lazy.extra():
            from tokenizers import models
        self._marks = {*marks}
        ids = {piece: number for number, piece in enumerate({*pieces, ""})}
        # Any word of any length; "" is found for a word with a letter that is not a piece.
        self._model = models.WordPiece(
            ids, unk_token="", max_input_chars_per_word=2**31, continuing_subword_prefix=""
        )
        self.split = functools.cache(self._split)

    def _split(self, word: str) -> tuple[str, ...]:
        """Splits a word; one with a letter that is not a piece stays whole."""
        if word in self._marks:
            return (word,)
        spelled = MARK + word.replace(MARK, "_")  # a mark within could be that of another word
        return tuple(token.value or spelled for token in self._model.tokenize(spelled))

    def words_of(self, pieces: Iterable[str]) -> list[tuple[str, list[str]]]:
        """Returns the words that pieces spell, each with its pieces."""
        words: list[list[str]] = []
        for piece in pieces:
            if words and not (piece.startswith(MARK) or {piece, words[-1][0]} & self._marks):
                words[-1].append(piece)
            else:
                words.append([piece])
        return [("".join(word).replace(MARK, "") or MARK, word) for word in words]


def learn_subwords(counts: Mapping[str, int], size: int) -> collections.Counter:
    """Learns at most `size` pieces of words, all letters among them; returns their counts."""
    with lazy.extra():
        from tokenizers import Tokenizer, models, trainers
    words = ((MARK + word.replace(MARK, "_"), count) for word, count in sorted(counts.items()))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.train_from_iterator(
        itertools.chain.from_iterable(itertools.repeat(*word) for word in words),
        trainers.BpeTrainer(vocab_size=size, show_progress=False),
    )
    subwords = Subwords(tokenizer.get_vocab())
    pieces = collections.Counter({piece: 0 for piece in tokenizer.get_vocab() if len(piece) == 1})
    for word, count in counts.items():
        for piece in subwords.split(word):
            pieces[piece] += count
    return pieces
