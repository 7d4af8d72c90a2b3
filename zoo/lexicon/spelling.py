"""Spellings: words as sequences of letters, for whatever is computed from characters.

A letter is a byte of UTF-8 or a character (a Unicode code point); its number is the same for every
lexicon that shares the alphabet, so that what was learned of letters holds for words never seen.
With bytes there is nothing to share: there are 256.

The marks of a lexicon, its boundary and its unknown word, are not spelled: each is one letter of
its own. So no word of a text can be mistaken for them.

Padding, for windows of n letters over begin marks o, the word and end marks . (Labeau and Allauzen
2017, table 1, n = 5):

    full    n - 1 marks on each side        oooona....   ooootreba....
    light   one mark on each side, and      oona.        otreba.
            more only until there are n     ooa..

With full padding all words that begin alike share their first windows, which light padding avoids.
"""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np

from zoo.errors import UserError, check_choices, check_least

# Letters that are no letters. What a speller can say begins at END.
PADDING, BEGIN, END, UNKNOWN_LETTER, BOUNDARY, UNKNOWN_WORD = range(6)
MARKS = 6
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NO_BYTE = b"\xff"  # which no UTF-8 has


@dataclasses.dataclass(frozen=True)
class Spelling:
    """How words become letters.

    Attributes:
      unit: "bytes" of UTF-8, or "characters": the code points of the training words, each with a
        letter, and all others with one for unknown letters.
      padding: "light" or "full".
      longest: words are cut after so many letters; see `cut_words`.

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
        check_choices(self, unit=("bytes", "characters"), padding=("light", "full"))

    def letter_count(self, lexicon) -> int:
        """A, how many letters there are, the marks among them."""
        return MARKS + (256 if self.unit == "bytes" else len(lexicon.letters))

    def same_letters(self, lexicon, other):
        """Checks that letters have the same numbers in both lexicons, as parameters of letters
        need: UserError if they have not."""
        if self.unit == "characters" and lexicon.letters != other.letters:
            raise UserError(
                "the other lexicon has another alphabet than that of training: give it the same as "
                "Lexicon.alphabet, or train with spelling.unit=bytes, which every lexicon shares."
            )

    def letters(self, lexicon) -> list[list[int]]:
        """The letters of each word, cut, without begin and end marks."""
        marks = {lexicon.boundary: [BOUNDARY], lexicon.unknown: [UNKNOWN_WORD]}
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

    def cut_words(self, lexicon) -> int:
        """How many words have more than `longest` letters."""
        uncut = dataclasses.replace(self, longest=sys.maxsize).letters(lexicon)
        return sum(len(letters) > self.longest for letters in uncut)

    def foreign_words(self, lexicon) -> int:
        """How many words have letters that are all one letter, being outside the alphabet."""
        if self.unit == "bytes":
            return 0
        return sum(UNKNOWN_LETTER in letters for letters in self.letters(lexicon))

    def warnings(self, lexicon, of: str) -> dict[str, int]:
        """What a component, `of`, loses of the words of a lexicon, by name."""
        counts = {f"words cut by the {of}": self.cut_words(lexicon)}
        if self.unit == "characters":
            counts[f"words with letters unknown to the {of}"] = self.foreign_words(lexicon)
        return counts

    def tables(self, lexicon, window: int) -> dict[str, np.ndarray]:
        """The padded spellings, for windows of `window` letters.

        Returns:
          letters: int32 [V, L], filled up with PADDING. lengths: int32 [V], marks counted, each at
          least `window`.
        """
        rows = []
        for letters in self.letters(lexicon):
            begins, ends = self._marks_around(np.array(len(letters)), window)
            rows.append([BEGIN] * int(begins) + letters + [END] * int(ends))
        # With full padding and windows of one letter, an empty word has no letter at all.
        rows = [row or [END] for row in rows]
        return table(rows)

    def _marks_around(self, sizes, window: int):
        """(begin marks, end marks) of words of so many letters, arrays of numpy or JAX."""
        if self.padding == "full":
            return sizes * 0 + window - 1, sizes * 0 + window - 1
        missing = (window - 2 - sizes).clip(0)
        return 1 + (missing + 1) // 2, 1 + missing // 2

    def padded(self, letters, window: int) -> tuple[jax.Array, jax.Array]:
        """Letters of a speller, padded as `tables` does; for spellings that no lexicon has.

        Args:
          letters: int32 [n, longest], see `sequence_tables`: END last, if at all, then PADDING.

        Returns:
          (letters int32 [n, L], lengths int32 [n]).
        """
        sizes = (letters > END).sum(axis=1)
        begins, ends = self._marks_around(sizes, window)
        ends = ends + (sizes + begins + ends == 0)
        widest = sum(map(int, self._marks_around(np.array(self.longest), window))) + self.longest
        positions = jnp.arange(max(widest, window))[None] - begins[:, None]
        within = jnp.take_along_axis(letters, positions.clip(0, self.longest - 1), axis=1)
        after = jnp.where(positions < (sizes + ends)[:, None], END, PADDING)
        padded = jnp.where(positions < sizes[:, None], within, after)
        return jnp.where(positions < 0, BEGIN, padded), sizes + begins + ends

    def sequence_tables(self, lexicon) -> dict[str, np.ndarray]:
        """The letters that a speller says for each word: the word and END, `longest` letters at
        most.

        A word of `longest` letters or more has no END: it stands for all words that begin so.

        Returns:
          letters: int32 [V, L], filled up with PADDING. lengths: int32 [V].
        """
        return table([[*letters, END][: self.longest] for letters in self.letters(lexicon)])


def table(rows: list[list[int]]) -> dict[str, np.ndarray]:
    """{"letters": int32 [V, L], filled up with PADDING; "lengths": int32 [V]}."""
    lengths = np.array([len(row) for row in rows], np.int32)
    letters = np.full((len(rows), lengths.max()), PADDING, np.int32)
    letters[np.arange(letters.shape[1])[None] < lengths[:, None]] = np.concatenate(rows)
    return {"letters": letters, "lengths": lengths}


def word(letters, lexicon, spelling: Spelling) -> str:
    """The text of one sequence of letters, up to END; marks of the lexicon in their own spelling.

    Bytes that are no UTF-8 show as the replacement character, and so do unknown letters, marks
    within a word, and marks that the lexicon has not.
    """
    letters = [int(letter) for letter in letters]
    letters = letters[: letters.index(END)] if END in letters else letters
    if len(letters) == 1 and letters[0] in (BOUNDARY, UNKNOWN_WORD):
        mark = lexicon.boundary if letters[0] == BOUNDARY else lexicon.unknown
        return REPLACEMENT if mark is None else mark
    if spelling.unit == "bytes":
        spelled = (bytes([n - MARKS]) if n >= MARKS else _NO_BYTE for n in letters)
        return b"".join(spelled).decode("utf-8", "replace")
    known = lexicon.letters
    return "".join(REPLACEMENT if n < MARKS else known[n - MARKS] for n in letters)
