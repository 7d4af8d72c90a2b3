"""A background for characters that lets in words with evidence: condition-based priming.

Dymetman and Xiao (2016), section 4, after Goyal, Dymetman and Gaussier (2016): a text that realises
a condition consists of usual words and of names, and a name may be there only if the condition has
it. The background is a weighted automaton over characters. One part of it, a trie of the usual
words, is the same for all texts. The other part follows the words of the condition, which is the
beginning of the sequence itself, so that names never seen in training are let in too.
"""

import collections
import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.types import Carry, Context, Tables
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon
from zoo.priors.prior import ContextualBackground, Reset, Texts, lexicon_tables, scan_words

# The node of a word that cannot become a usual word any more.
LOST = -1


@dataclasses.dataclass(frozen=True)
class Evidence(ContextualBackground):
    """b(x | c) = b(x), times exp(-penalty) if x makes a word that is neither usual nor evident.

    b(x) is the lexicon's background. Words are runs of letters. A word is usual if the splits have
    it often without evidence, and evident if the condition has it. The characters up to `separator`
    are the condition, within which b(x | c) is b(x). A word pays the penalty once: at the first
    character with which no usual or evident word begins like it, or where it ends too early. The
    rest of the word is free.

    Attributes:
      separator: the character between the condition and the text.
      penalty: in nats.
      minimum_count: the number of occurrences, in texts whose condition does not have the word,
        that make a word usual.
      longest: the number of characters of the condition that are kept; later ones do not count as
        evidence.
      splits: the splits whose words are counted.

    Example:
      >>> letters = Lexicon(("</s>", "|", "a", "b"), np.ones(4, int), boundary="</s>")
      >>> even = with_features(letters, [{}] * 4, np.log(np.full(4, 0.25)))
      >>> background = priors.Evidence(minimum_count=1, penalty=np.log(5))
      >>> lexicon = with_background(even, background, [[*"ab|ab"]])
      >>> predict(background, lexicon, ["</s>", *"ab|a"])  # "ab" is evident, and no other word
      {'</s>': 5, '|': 5, 'a': 5, 'b': 25}
    """

    separator: str = "|"
    penalty: float = 8.0
    minimum_count: int = 5
    longest: int = 192
    splits: tuple[str, ...] = ("train",)

    def __post_init__(self):
        check_least(self, "priors.Evidence", penalty=0, minimum_count=1, longest=1)
        if math.isinf(self.penalty):
            raise UserError(
                "priors.Evidence.penalty is infinite, and training texts may have words without "
                "evidence, misspelt ones for instance: give a finite number."
            )
        if not self.splits:
            raise UserError("priors.Evidence.splits is empty: name the splits with usual words.")

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Builds the trie of the usual words, and tells which characters are letters."""
        self._check_marks(lexicon)
        marks = (lexicon.unknown, lexicon.boundary)
        letter = np.array([w.isalpha() and w not in marks for w in lexicon.words])
        child, final = _trie(self.usual_words(lexicon, texts), len(lexicon))
        return {"letter": letter, "child": child, "final": final}

    def _check_marks(self, lexicon):
        """Raises UserError unless the lexicon has the separator and a boundary."""
        if self.separator not in lexicon.ids or lexicon.boundary is None:
            raise UserError(
                f"priors.Evidence needs texts that end with a boundary and have a condition before "
                f"{self.separator!r}: set its separator to the data's, and vocabulary.boundary."
            )

    def usual_words(self, lexicon: Lexicon, texts: Texts) -> list[tuple[int, ...]]:
        """Returns the usual words, as tuples of character ids."""
        separator = lexicon.ids[self.separator]
        letters = {word_id for word_id, word in enumerate(lexicon.words) if word.isalpha()}
        counts: collections.Counter = collections.Counter()
        for text in texts.values():
            for sentence in np.split(text.words, text.starts[1:]):
                ids = sentence.tolist()
                cut = ids.index(separator) if separator in ids else -1
                evident = set(_words(ids[: max(cut, 0)][: self.longest], letters))
                words = _words(ids[cut + 1 :], letters)
                counts.update(word for word in words if word not in evident)
        return sorted(word for word, count in counts.items() if count >= self.minimum_count)

    def tables(self, lexicon: Lexicon) -> Tables:
        self._check_marks(lexicon)
        separator = jnp.asarray(lexicon.ids[self.separator], jnp.int32)
        return super().tables(lexicon) | lexicon_tables(lexicon) | {"separator": separator}

    def initial_carry(self, batch: int) -> Carry:
        shape = (batch, self.longest + 1)
        return {
            "condition": jnp.full(shape, -1, jnp.int32),  # its characters, then -1
            "length": jnp.zeros(batch, jnp.int32),  # the number of its characters
            "inside": jnp.zeros(batch, bool),  # whether the text after the condition has begun
            "node": jnp.zeros(batch, jnp.int32),  # of the trie
            # The positions of the condition at which a word of it goes on, after beginning like the
            # current word.
            "matched": jnp.zeros(shape, bool),
            "begun": jnp.zeros(batch, bool),  # whether a word has begun
        }

    def apply(self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None):
        """Computes the contexts after words [B, T], and the carry; see `Contextual.apply`.

        A context has "evident", bool [B, T, V], the letters with which a word of the condition goes
        on; "may_end", bool [B, T], whether the word so far may be whole (or there is none); "node",
        [B, T], of the trie, or LOST; "free", bool [B, T], whether any character may come. As there
        are few characters, "evident" is smaller than the state from which it is computed.
        """

        def step(carry: Carry, word: jax.Array, fresh: jax.Array):
            carry = self._read(tables, carry, word, fresh)
            return carry, self._context(tables, carry)

        return scan_words(step, carry, words, reset)

    def _read(self, tables, carry, word, fresh):
        """Computes the carry after one more character of each batch row, [B]."""
        empty, ended = self.initial_carry(word.shape[0]), word == tables["boundary"]
        fresh |= ended
        carry = jax.tree.map(
            lambda start, leaf: jnp.where(fresh.reshape(-1, *[1] * (leaf.ndim - 1)), start, leaf),
            empty,
            carry,
        )
        condition, length, inside = carry["condition"], carry["length"], carry["inside"]
        positions = jnp.arange(self.longest + 1)[None]
        # A character of the condition. The last position stays empty: every word there has an end.
        appends = ~inside & ~ended & (word != tables["separator"]) & (length < self.longest)
        is_end = appends[:, None] & (positions == length[:, None])
        condition = jnp.where(is_end, word[:, None], condition)
        inside |= word == tables["separator"]

        letters = (condition >= 0) & tables["letter"][condition]
        before = jnp.pad(letters[:, :-1], ((0, 0), (1, 0)))
        goes_on = carry["inside"] & tables["letter"][word]
        followed = carry["matched"] & (condition == word[:, None])
        followed = jnp.pad(followed[:, :-1], ((0, 0), (1, 0)))
        node = carry["node"]
        child = jnp.where(node >= 0, tables["child"][node, word], 0)
        return {
            "condition": condition,
            "length": length + appends,
            "inside": inside,
            "node": jnp.where(goes_on, jnp.where(child > 0, child, LOST), 0),
            "matched": jnp.where(goes_on[:, None], followed, letters & ~before),
            "begun": goes_on,
        }

    def _context(self, tables, carry):
        """Computes the context of one position from the carry; see `apply`."""
        condition, matched, node = carry["condition"], carry["matched"], carry["node"]
        letters = (condition >= 0) & tables["letter"][condition]
        batch = node.shape[0]
        rows = jnp.arange(batch)[:, None]
        evident = jnp.zeros((batch, len(tables["letter"])), jnp.int32)
        evident = evident.at[rows, condition].add(matched & letters) > 0
        ends = (matched & ~letters).any(-1) | ((node >= 0) & tables["final"][node])
        lost = (node < 0) & ~matched.any(-1)
        return {
            "evident": evident,
            "may_end": ends | ~carry["begun"],
            "node": node,
            "free": ~carry["inside"] | lost,
        }

    def log_probs(self, tables: Tables, contexts: Context) -> jax.Array:
        """Computes log b(x | c) of every character, nats, [..., V]; not normalised."""
        node = contexts["node"][..., None]
        usual = (node >= 0) & (tables["child"][jnp.maximum(node[..., 0], 0)] > 0)
        letter = jnp.broadcast_to(tables["letter"], usual.shape)
        is_allowed = jnp.where(letter, usual | contexts["evident"], contexts["may_end"][..., None])
        is_allowed |= contexts["free"][..., None]
        log_background = jnp.broadcast_to(tables["log_background"], is_allowed.shape)
        return log_background - jnp.where(is_allowed, 0, self.penalty)


def _words(ids, letters):
    """Returns the runs of letters among character ids, each a tuple."""
    runs = itertools.groupby(ids, letters.__contains__)
    return [tuple(run) for are_letters, run in runs if are_letters]


def _trie(words, characters):
    """Returns (child int32 [nodes, V], 0 for none; final bool [nodes]) of words, tuples of ids."""
    node_by_prefix: dict[tuple[int, ...], int] = {(): 0}
    for word in words:
        for size in range(1, len(word) + 1):
            node_by_prefix.setdefault(word[:size], len(node_by_prefix))
    child = np.zeros((len(node_by_prefix), characters), np.int32)
    for prefix, node in node_by_prefix.items():
        if prefix:
            child[node_by_prefix[prefix[:-1]], prefix[-1]] = node
    return child, np.isin(np.arange(len(node_by_prefix)), [node_by_prefix[word] for word in words])
