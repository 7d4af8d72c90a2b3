"""The distinct prefixes of many spellings, which a speller reads to score all words of a lexicon.

Words that begin alike share their first letters, and so the speller's states after these letters.
Prefixes are laid out shortest first, in blocks with prefixes of one length each. So the states from
which the prefixes of a block continue come from earlier blocks.
"""

from typing import NamedTuple

import numpy as np

# Prefixes of a block: enough for efficient products, few enough for little padding.
BLOCK = 128


class PrefixTree(NamedTuple):
    """Words as paths of a tree, a node for each of their prefixes.

    The first block of slots has no prefixes. The empty prefix, at the slot BLOCK, has the parent 0
    and the letter `begin`; padding has the same.
    """

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
