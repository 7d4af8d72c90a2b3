"""The prefixes of many spellings, each once: what a speller reads to score all words of a lexicon.

Words that begin alike share the letters that they begin with, and so do the speller's states after
them. Prefixes are laid out shortest first, in blocks of which each has prefixes of one length only:
block by block, the states that a block's prefixes go on from are there.
"""

from typing import NamedTuple

import numpy as np

# Prefixes of a block: enough for efficient products, few enough that little of them is filling.
BLOCK = 128


class PrefixTree(NamedTuple):
    """Words as paths of a tree, a node for each of their prefixes.

    Slots of prefixes count from the second block on; the first has no prefix, and stands before
    all. The empty prefix, at the slot BLOCK, has the parent 0 and the letter `begin`, and so has
    filling.

    Attributes:
      parent: int32 [m, BLOCK], the slot of each prefix without its last letter.
      letter: int32 [m, BLOCK], the last letter of each prefix.
      node: int32 [V], the slot of each word without its last letter.
      final: int32 [V], the last letter of each word.
    """

    parent: np.ndarray
    letter: np.ndarray
    node: np.ndarray
    final: np.ndarray


def prefix_tree(
    letters: np.ndarray, lengths: np.ndarray, begin: int, block: int = BLOCK
) -> PrefixTree:
    """The tree of spellings [V, L] of these lengths [V], each at least 1; all letters >= 0."""
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
