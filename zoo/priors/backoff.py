"""n-gram distributions in their back-off form, as sparse tables that run on the device.

A model of order n gives, for a context c of n - 1 words with suffix c' (c without its first word),

    b(x | c) = additional(x | c) + backoff(c) b(x | c'),

down to a unigram distribution b(x). `additional` is 0 but for the words that were seen after c, so

    b(. | c) = weight(c) b(.) + the additions of c and its suffixes, each with a weight of its own,

a dense vector that is the same for all contexts, and short lists. Contexts are the nodes of a trie
whose edges are words read backwards: the suffixes of a context are the nodes on the way to it.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from zoo.priors.contextual import ContextualBackground

# Words are taken from a node's list so many at a time.
WINDOW = 16
# So many windows at a time.
WINDOWS = 4096
# A list with more than one word in so many of the vocabulary is kept as a dense row.
DENSE = 16


class Trie:
    """All suffixes of some contexts, as nodes in breadth-first order; node 0 has no words.

    Attributes:
      word: int32 [nodes], the word that an edge leads to a node with. start: int64 [nodes + 1], the
        children of node u are the nodes start[u] to start[u + 1], in the order of their words.
      levels: where the nodes of each length begin, and the number of nodes.
    """

    def __init__(self, contexts: list[np.ndarray], vocabulary: int):
        """Of contexts, int [m, length] each, in the order of the text."""
        self.vocabulary = vocabulary
        order = 1 + max((array.shape[1] for array in contexts), default=0)
        parents = [np.zeros(len(array), np.int64) for array in contexts]
        self._keys = [np.zeros(1, np.int64)]
        self.levels = [0, 1]
        for length in range(1, order):
            longer = [
                (parent * vocabulary + array[:, -length])
                for parent, array in zip(parents, contexts, strict=True)
                if array.shape[1] >= length
            ]
            keys = np.unique(np.concatenate(longer))
            self._keys.append(keys)
            self.levels.append(self.levels[-1] + len(keys))
            rest = iter(longer)
            parents = [
                self.levels[length] + np.searchsorted(keys, next(rest))
                if array.shape[1] >= length
                else parent
                for parent, array in zip(parents, contexts, strict=True)
            ]
        self._nodes = parents
        keys = np.concatenate(self._keys)
        self.word = (keys % vocabulary).astype(np.int32)
        children = np.bincount(keys[1:] // vocabulary, minlength=len(keys))
        self.start = 1 + np.concatenate([[0], np.cumsum(children)])

    def __len__(self):
        return len(self.word)

    def nodes(self) -> list[np.ndarray]:
        """The node of each context that the trie was made of."""
        return self._nodes


def prepare(unigram, trie: Trie, backoff, nodes, words, additional) -> dict[str, np.ndarray]:
    """The tables of a model, as a `Backoff` keeps them.

    Args:
      unigram: b(x), [V]. backoff: [nodes of the trie].
      nodes, words, additional: [m] each, additional(words | context of nodes), in any order.
    """
    order = np.lexsort((words, nodes))
    counts = np.bincount(nodes, minlength=len(trie))
    return {
        "unigram": np.asarray(unigram, np.float32),
        "node_word": trie.word,
        "node_start": trie.start.astype(np.int32),
        "levels": np.array(trie.levels, np.int32),
        "backoff": np.asarray(backoff, np.float32),
        "list_start": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        "list_word": np.asarray(words, np.int32)[order],
        "list_value": np.asarray(additional, np.float32)[order],
    }


def _find(starts, sorted_words, node, word):
    """(place of the word in the node's part of sorted_words, whether it is there), [...] each."""
    low, high = starts[node], starts[node + 1]
    last = len(sorted_words) - 1

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        below = (sorted_words[jnp.minimum(middle, last)] < word) & (low < high)
        return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

    low, _ = jax.lax.fori_loop(0, len(sorted_words).bit_length(), halve, (low, high))
    return low, (low < high) & (sorted_words[jnp.minimum(low, last)] == word)


class Backoff(ContextualBackground):
    """A background in back-off form; `prepare` of a subclass gives the tables of `prepare` here.

    The carry is the last n - 1 words, -1 where there is none. A context is the nodes of its
    suffixes, int32 [..., n - 1], the shortest first, 0 where the model has no such node.
    """

    order: int

    def tables(self, lexicon):
        """The tables, and the same additions by signature and as dense rows where they are many."""
        kept = lexicon.background_tables
        signature = np.arange(len(lexicon), dtype=np.int32)
        if lexicon.feature_names:
            signature, _ = lexicon.signatures
        signatures = int(signature.max()) + 1
        starts, words, values = kept["list_start"], kept["list_word"], kept["list_value"]
        lengths = np.diff(starts)
        is_dense = lengths > len(lexicon) / DENSE
        row, dense = np.zeros(len(lengths), np.int32), {"word": [], "signature": []}
        for first, end in zip(kept["levels"][1:-1], kept["levels"][2:], strict=True):
            chosen = first + np.flatnonzero(is_dense[first:end])
            row[chosen] = 1 + np.arange(len(chosen))
            by_word = np.zeros((1 + len(chosen), len(lexicon)), np.float32)
            by_signature = np.zeros((1 + len(chosen), signatures))
            for place, node in enumerate(chosen, 1):
                part = slice(starts[node], starts[node + 1])
                by_word[place, words[part]] = values[part]
                np.add.at(by_signature[place], signature[words[part]], values[part])
            dense["word"].append(jnp.asarray(by_word))
            dense["signature"].append(jnp.asarray(by_signature, jnp.float32))
        tables = {name: jnp.asarray(array) for name, array in kept.items() if name != "levels"}
        return tables | {
            "list_signature": jnp.asarray(signature[words]),
            "unigram_signature": jnp.asarray(
                np.bincount(signature, kept["unigram"], signatures), jnp.float32
            ),
            "dense_row": jnp.asarray(row),
            "dense_word": tuple(dense["word"]),
            "dense_signature": tuple(dense["signature"]),
            "sparse_length": jnp.asarray(np.where(is_dense, 0, lengths), jnp.int32),
        }

    def initial_carry(self, batch):
        """No words."""
        return jnp.full((batch, self.order - 1), -1, jnp.int32)

    def apply(self, tables, words, carry, *, reset=None):
        """words [B, T] -> (nodes [B, T, n - 1], carry)."""
        time, span = words.shape[1], self.order - 1
        words = jnp.concatenate([carry, words.astype(jnp.int32)], axis=1)
        sequence = jnp.zeros(words.shape, jnp.int32)
        if reset is not None:
            sequence = sequence.at[:, span:].set(jnp.cumsum(reset, axis=1))
        node, nodes = jnp.zeros((words.shape[0], time), jnp.int32), []
        found = jnp.ones(node.shape, bool)
        for back in range(span):
            here = slice(span - back, span - back + time)
            found &= sequence[:, here] == sequence[:, span:]
            child, there = _find(tables["node_start"], tables["node_word"], node, words[:, here])
            found &= there
            node = jnp.where(found, child, 0)
            nodes.append(node)
        same = sequence[:, time:] == sequence[:, -1:]
        carry = jnp.where(same, words[:, time:], -1)
        return jnp.stack(nodes, axis=-1), carry

    def log_prob(self, tables, contexts, words):
        """log b(words | c), nats, [...]."""
        probability = tables["unigram"][words]
        for level in range(contexts.shape[-1]):
            node = contexts[..., level]
            place, there = _find(tables["list_start"], tables["list_word"], node, words)
            value = tables["list_value"][jnp.minimum(place, len(tables["list_value"]) - 1)]
            probability = tables["backoff"][node] * probability + jnp.where(there, value, 0)
        return jnp.log(probability)

    def log_probs(self, tables, contexts):
        """log b of every word, nats, [..., V]."""
        return self._log_masses(tables, contexts, "word", tables["unigram"])

    def log_masses(self, tables, contexts, signature, signatures):
        """log B(s | c), nats, [..., S]: from the differences to the unigram distribution alone."""
        return self._log_masses(tables, contexts, "signature", tables["unigram_signature"])

    def _log_masses(self, tables, contexts, kind, unigram):
        shape = contexts.shape[:-1]
        nodes = contexts.reshape(math.prod(shape), contexts.shape[-1])
        # What the additions of a node are multiplied with: the weights of the longer contexts.
        backoff = jnp.concatenate([tables["backoff"][nodes], jnp.ones((len(nodes), 1))], axis=1)
        weight = jnp.cumprod(backoff[:, ::-1], axis=1)[:, ::-1].astype(unigram.dtype)
        masses = weight[:, :1] * unigram[None]
        for level, rows in enumerate(tables[f"dense_{kind}"]):
            if len(rows) > 1:
                row = tables["dense_row"][nodes[:, level]]
                masses += weight[:, level + 1, None] * rows[row]
        if nodes.size and len(tables["list_word"]):
            masses = _add_lists(masses, tables, nodes, weight[:, 1:], tables[f"list_{kind}"])
        return jnp.log(masses).reshape(*shape, -1)


def _add_lists(masses, tables, nodes, weight, column):
    """masses [N, C] + sum over the sparse nodes of each row of weight * additions.

    The lists have very different lengths: they are cut into windows, and the windows of all nodes
    are taken one after the other, so that the time goes with the number of words in the lists.
    """
    rows, levels = nodes.shape
    node, weight = nodes.reshape(-1), weight.reshape(-1)
    length, start = tables["sparse_length"][node], tables["list_start"][node]
    ends = jnp.cumsum(-(-length // WINDOW))
    chunk = min(WINDOWS, 4 * rows * levels)

    def add(state):
        first, masses = state
        window = first + jnp.arange(chunk)
        owner = jnp.minimum(jnp.searchsorted(ends, window, side="right"), rows * levels - 1)
        before = jnp.where(owner > 0, ends[owner - 1], 0)
        offset = (window - before)[:, None] * WINDOW + jnp.arange(WINDOW)[None]
        real = (window < ends[-1])[:, None] & (offset < length[owner][:, None])
        place = jnp.where(real, start[owner][:, None] + offset, 0)
        values = jnp.where(real, tables["list_value"][place] * weight[owner][:, None], 0)
        row = jnp.broadcast_to((owner // levels)[:, None], place.shape)
        return first + chunk, masses.at[row, column[place]].add(values)

    _, masses = jax.lax.while_loop(lambda state: state[0] < ends[-1], add, (0, masses))
    return masses
