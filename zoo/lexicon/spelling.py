"""Spellings: words as sequences of letters, for models of characters.

A letter is a byte of UTF-8 or a character (a Unicode code point). Its number is the same for every
lexicon that shares the alphabet, so that parameters of letters apply to words never seen. With
bytes all lexicons share the alphabet of 256.

The marks of a lexicon, its boundary and its unknown word, are not spelled: each is one letter of
its own. So no word of a text can be mistaken for a mark.

Padding, for windows of n letters over begin marks o, the word and end marks . (Labeau and Allauzen
2017, table 1, n = 5):

    full    n - 1 marks on each side        oooona....   ooootreba....
    light   one mark on each side, and      oona.        otreba.
            more only until there are n     ooa..
    fixed   one mark on each side, and      oona._____   otreba.___
            the same length for all words

With full padding all words that begin alike share their first windows, which light padding avoids.
Fixed padding is Jozefowicz et al.'s (2016): windows see the letters _ after the end, too, and the
unknown word is spelled as other words are.
"""

import dataclasses
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.errors import UserError, check_choices, check_least

# Letters that are not characters or bytes. A speller can emit END and all letters after it.
PADDING, BEGIN, END, UNKNOWN_LETTER, BOUNDARY, UNKNOWN_WORD = range(6)
MARKS = 6
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NO_BYTE = b"\xff"  # which no UTF-8 has


@dataclasses.dataclass(frozen=True)
class Spelling:
    """The conversion of words to letters.

    Attributes:
      unit: "bytes" of UTF-8, or "characters": a letter for each code point of the training words,
        and one unknown letter for all other code points.
      padding: "light", "full" or "fixed".
      longest: the number of letters after which words are cut; see `warnings`.

    Example:
      >>> lexicon = Lexicon(words=("a", "cab"), counts=np.array([3, 2]))
      >>> spelling = Spelling(unit="characters")
      >>> spelling.letters(lexicon)  # the letters a, b, c, after six marks
      [[6], [8, 6, 7]]
    """

    unit: str = "bytes"
    padding: str = "light"
    longest: int = 50

    def __post_init__(self):
        check_least(self, longest=1)
        check_choices(self, unit=("bytes", "characters"), padding=("light", "full", "fixed"))

    def letter_count(self, lexicon) -> int:
        """Returns A, the number of letters, the marks among them."""
        return MARKS + (256 if self.unit == "bytes" else len(lexicon.letters))

    def check_same_letters(self, lexicon, new_lexicon):
        """Raises UserError unless letters have the same numbers in both lexicons."""
        if self.unit == "characters" and lexicon.letters != new_lexicon.letters:
            raise UserError(
                "the other lexicon does not have the alphabet of training: give it the same "
                "Lexicon.alphabet, or train with spelling.unit=bytes, which every lexicon shares."
            )

    def letters(self, lexicon) -> list[list[int]]:
        """Spells each word, cut after `longest` letters, without begin and end marks."""
        marks = {lexicon.boundary: [BOUNDARY]}
        if self.padding != "fixed":
            marks[lexicon.unknown] = [UNKNOWN_WORD]
        if self.unit == "bytes":
            # A lone surrogate, which a damaged text may hold, has bytes too.
            spelled = (
                [MARKS + b for b in w.encode("utf-8", "surrogatepass")] for w in lexicon.words
            )
        else:
            ids = {letter: MARKS + number for number, letter in enumerate(lexicon.letters)}
            spelled = ([ids.get(c, UNKNOWN_LETTER) for c in word] for word in lexicon.words)
        return [
            marks.get(word) or letters[: self.longest]
            for word, letters in zip(lexicon.words, spelled, strict=True)
        ]

    def warnings(self, lexicon, component: str) -> dict[str, int]:
        """Counts the words whose letters a component loses, {description: number of words}."""
        uncut = dataclasses.replace(self, longest=sys.maxsize).letters(lexicon)
        counts = {f"words cut by the {component}": sum(len(row) > self.longest for row in uncut)}
        if self.unit == "characters":
            lost = sum(UNKNOWN_LETTER in row[: self.longest] for row in uncut)
            counts[f"words with letters unknown to the {component}"] = lost
        return counts

    def tables(self, lexicon, window: int) -> dict[str, np.ndarray]:
        """Makes the padded spellings of V words, for windows of `window` letters.

        Returns:
          letters: int32 [V, L], filled up with PADDING.
          lengths: int32 [V], with begin and end marks, each at least `window`.
        """
        rows = []
        for letters in self.letters(lexicon):
            begins, ends = self._marks_around(np.array(len(letters)), window)
            row = [BEGIN] * int(begins) + letters + [END] * int(ends)
            rows.append(row + [PADDING] * (self._least_length(window) - len(row)))
        # With full padding and windows of one letter, an empty word has no letter at all.
        rows = [row or [END] for row in rows]
        return table(rows)

    def _least_length(self, window: int) -> int:
        """Returns the length that all padded spellings have at least; with fixed padding, have."""
        return max(self.longest + 2, window) if self.padding == "fixed" else 0

    def _marks_around(self, sizes, window: int):
        """Returns (begin marks, end marks) of words of `sizes` letters, arrays of numpy or JAX."""
        if self.padding == "full":
            return sizes * 0 + window - 1, sizes * 0 + window - 1
        missing = (window - 2 - sizes).clip(0) * (self.padding == "light")
        return 1 + (missing + 1) // 2, 1 + missing // 2

    def pad(self, letters, window: int) -> tuple[jax.Array, jax.Array]:
        """Pads a speller's letters, int32 [n, longest], as `tables` pads words; returns (letters
        int32 [n, L], lengths int32 [n])."""
        sizes = (letters > END).sum(axis=1)
        begins, ends = self._marks_around(sizes, window)
        ends = ends + (sizes + begins + ends == 0)
        widest = sum(map(int, self._marks_around(np.array(self.longest), window))) + self.longest
        positions = jnp.arange(max(widest, window))[None] - begins[:, None]
        within = jnp.take_along_axis(letters, positions.clip(0, self.longest - 1), axis=1)
        after = jnp.where(positions < (sizes + ends)[:, None], END, PADDING)
        padded = jnp.where(positions < sizes[:, None], within, after)
        lengths = (sizes + begins + ends).clip(self._least_length(window))
        return jnp.where(positions < 0, BEGIN, padded), lengths

    def sequence_tables(self, lexicon) -> dict[str, np.ndarray]:
        """Makes the letters that a speller emits for each word: the word and END.

        A word is cut after `longest` letters. A word of `longest` letters or more has no END: it
        stands for all words with the same first letters.

        Returns:
          letters: int32 [V, L], filled up with PADDING.
          lengths: int32 [V].
        """
        return table([[*letters, END][: self.longest] for letters in self.letters(lexicon)])


def table(rows: list[list[int]]) -> dict[str, np.ndarray]:
    """Pads rows of letters to {"letters": int32 [V, L], by PADDING; "lengths": int32 [V]}."""
    lengths = np.array([len(row) for row in rows], np.int32)
    letters = np.full((len(rows), lengths.max()), PADDING, np.int32)
    letters[np.arange(letters.shape[1])[None] < lengths[:, None]] = np.concatenate(rows)
    return {"letters": letters, "lengths": lengths}


def word(letters, lexicon, spelling: Spelling) -> str:
    """Decodes letters up to END; what spells nothing becomes the replacement character."""
    letters = [int(letter) for letter in letters]
    letters = letters[: letters.index(END)] if END in letters else letters
    if len(letters) == 1 and letters[0] in (BOUNDARY, UNKNOWN_WORD):
        mark = lexicon.boundary if letters[0] == BOUNDARY else lexicon.unknown
        return REPLACEMENT if mark is None else mark
    if spelling.unit == "bytes":
        spelled = (bytes([n - MARKS]) if n >= MARKS else _NO_BYTE for n in letters)
        return b"".join(spelled).decode("utf-8", "replace")
    return "".join(REPLACEMENT if n < MARKS else lexicon.letters[n - MARKS] for n in letters)


# ------------------------ prefixes of many spellings, which a speller reads to score all words
# Words that begin alike share their first letters, and so the speller's states after these letters.
# Prefixes are laid out shortest first, in blocks with prefixes of one length each. So the states
# from which the prefixes of a block continue come from earlier blocks.

# Prefixes of a block: enough for efficient products, few enough for little padding.
BLOCK = 128


class PrefixTree(NamedTuple):
    """Words as paths of a tree, a node for each of their prefixes."""

    # The first block of slots has no prefixes. The empty prefix, at the slot BLOCK, and padding
    # have the parent 0 and the letter `begin`.

    parent: np.ndarray  # int32 [m, BLOCK], the slot of each prefix without its last letter
    letter: np.ndarray  # int32 [m, BLOCK], the last letter of each prefix
    node: np.ndarray  # int32 [V], the slot of each word without its last letter
    final: np.ndarray  # int32 [V], the last letter of each word


def prefix_tree(
    letters: np.ndarray, lengths: np.ndarray, begin: int, block: int = BLOCK
) -> PrefixTree:
    """Builds the prefix tree of spellings."""
    alphabet = int(letters.max()) + 1
    parents = [_blocks(np.zeros(1, np.int64), 0, block)]
    last_letters = [_blocks(np.full(1, begin), begin, block)]
    node, used = np.full(len(letters), block), 2 * block
    for size in range(1, letters.shape[1]):
        longer = lengths > size
        prefixes, new_slots = np.unique(
            node[longer] * alphabet + letters[longer, size - 1], return_inverse=True
        )
        node[longer] = used + new_slots
        parent, letter = np.divmod(prefixes, alphabet)
        parents.append(_blocks(parent, 0, block))
        last_letters.append(_blocks(letter, begin, block))
        used += parents[-1].size
    final = letters[np.arange(len(letters)), lengths - 1]
    arrays = np.concatenate(parents), np.concatenate(last_letters), node, final
    return PrefixTree(*(array.astype(np.int32) for array in arrays))


def _blocks(values, filling, block):
    return np.pad(values, (0, -len(values) % block), constant_values=filling).reshape(-1, block)
