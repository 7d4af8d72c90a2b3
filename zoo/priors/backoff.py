"""n-gram distributions in their back-off form, as sparse tables that run on the device.

A model of order n gives, for a context c of n - 1 words with suffix c' (c without its first word),

    b(x | c) = listed(x | c)            for the words that the model lists after c,
               backoff(c) b(x | c')     for all others,

down to a unigram distribution b(x). So b(. | c) is weight(c) b(.), a dense vector that is the same
for all contexts, except for the words in the short lists of c and of its suffixes, each list with a
weight of its own. Contexts are the nodes of a trie whose edges are words read backwards: the
suffixes of a context are the nodes on the way to it.

The masses of signatures have the same form: B(s | c) is listed where c lists a word of s, and is
backoff(c) B(s | c') otherwise. Listed values are kept as logs of the whole value, never as a
difference to the backed-off value: a listed value may be far smaller, even 10^-99.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import array_files
from zoo.base.arrays.row_blocks import at_most, is_known
from zoo.base.arrays.types import Carry, Context, Tables
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.priors.prior import ContextualBackground, Reset

# Words of a node's list that are taken at a time.
WINDOW = 16
# Windows that are taken at a time.
WINDOWS = 4096
# A list with more than 1/DENSE of the vocabulary is kept as a dense row.
DENSE = 16
# Marks an item of a dense row that is not listed; log-probabilities are never +inf.
UNLISTED = np.inf


class Trie:
    """All suffixes of some contexts, as nodes in breadth-first order; node 0 has no words."""

    def __init__(self, words: np.ndarray, vocabulary: int):
        """Builds the trie of contexts by their words [n - 1, m], the last words first; -1: none."""
        last = words[0] + 1
        # Numbers of 16 bits are sorted in linear time.
        self.order = np.lexsort((last.astype(np.uint16), (last >> 16).astype(np.uint16)))
        self.nodes = group = np.zeros(len(last), np.int64)  # of the contexts in this order
        parents, level_words, self.levels = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [0, 1]
        for previous in words:
            keys = group * (vocabulary + 1) + previous[self.order] + 1
            # Fast, as only contexts with the same suffix are out of order.
            rank = np.argsort(keys, kind="stable")
            self.order, self.nodes, keys = self.order[rank], self.nodes[rank], keys[rank]
            starts, word = np.diff(keys, prepend=-1) > 0, keys % (vocabulary + 1) - 1
            group, is_new = np.cumsum(starts), starts & (word >= 0)
            parents.append(self.nodes[is_new])
            level_words.append(word[is_new])
            self.nodes = np.where(word < 0, self.nodes, self.levels[-1] - 1 + np.cumsum(is_new))
            self.levels.append(self.levels[-1] + len(parents[-1]))
        self.parent = np.concatenate(parents)
        self.word = np.concatenate(level_words).astype(np.int32)
        children = np.bincount(self.parent[1:], minlength=len(self.parent))
        self.start = 1 + np.concatenate([[0], np.cumsum(children)])

    def __len__(self):
        return len(self.word)


def prepare(
    trie: Trie, kind: str, lists: Sequence[tuple[np.ndarray, ...]], **weights: np.ndarray
) -> dict[str, np.ndarray]:
    """Makes the tables of a model, as a `Backoff` keeps them.

    `lists` has (nodes, words, values) of the n-grams of each length, sorted by nodes and words. An
    interpolated model has `unigram`, `backoff` and additional values, of the kind list_value; a
    model given by listed log-probabilities has log_unigram, log_backoff and list_log_prob.
    """
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    nodes, words, values = (np.concatenate(column) for column in zip(nothing, *lists, strict=True))
    counts = np.bincount(nodes, minlength=len(trie))
    return {
        **{name: np.asarray(array, np.float32) for name, array in weights.items()},
        "node_word": trie.word,
        "node_start": trie.start.astype(np.int32),
        "levels": np.array(trie.levels, np.int32),
        "list_start": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        "list_word": np.asarray(words, np.int32),
        kind: np.asarray(values, np.float32),
    }


def _find(starts, sorted_words, node, word):
    """Searches a word in its node's part of sorted_words: (its slot, whether it is there)."""
    low, high = starts[node], starts[node + 1]
    last = len(sorted_words) - 1

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]):
        low, high = bounds
        middle = (low + high) // 2
        below = (sorted_words[jnp.minimum(middle, last)] < word) & (low < high)
        return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

    low, _ = jax.lax.fori_loop(0, len(sorted_words).bit_length(), halve, (low, high))
    return low, (low < high) & (sorted_words[jnp.minimum(low, last)] == word)


class Backoff(ContextualBackground):
    """A background in back-off form.

    The method `prepare` of a subclass returns the tables of `prepare` of this module. The carry is
    the last n - 1 words, -1 for none. A context is the nodes of its suffixes, int32 [..., n - 1],
    the shortest first, 0 where the model does not have the suffix.
    """

    order: int

    def tables(self, lexicon: Lexicon) -> Tables:
        """Returns the trie, and the lists of words and of signatures, long ones as dense rows."""
        arrays = self.prepared_tables(lexicon)
        words = make_word_lists(arrays, len(lexicon))
        levels = arrays["levels"].astype(np.int64)
        is_dense = np.diff(words.start) > len(lexicon) / DENSE
        word_tables = signature_tables = _on_device(words, is_dense, levels)
        if lexicon.feature_names:  # without features each word is a signature
            masses = make_signature_lists(words, levels, lexicon.signatures[0])
            signature_tables = _on_device(masses, is_dense, levels)
        return {
            **{name: jnp.asarray(arrays[name]) for name in ("node_word", "node_start")},
            "log_backoff": jnp.asarray(np.log(words.backoff), jnp.float32),
            "word": word_tables,
            "signature": signature_tables,
        }

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any word: -1, int32 [batch, n - 1]."""
        return jnp.full((batch, self.order - 1), -1, jnp.int32)

    def apply(self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None):
        """Finds (nodes of the contexts after words [B, T], int32 [B, T, n - 1]; carry)."""
        time, span = words.shape[1], self.order - 1
        words = jnp.concatenate([carry, words.astype(jnp.int32)], axis=1)
        sequence = jnp.zeros(words.shape, jnp.int32)
        if reset is not None:
            sequence = sequence.at[:, span:].set(jnp.cumsum(reset, axis=1))
        node, nodes = jnp.zeros((words.shape[0], time), jnp.int32), []
        in_trie = jnp.ones(node.shape, bool)
        for back in range(span):
            part = slice(span - back, span - back + time)
            in_trie &= sequence[:, part] == sequence[:, span:]
            child, exists = _find(tables["node_start"], tables["node_word"], node, words[:, part])
            in_trie &= exists
            node = jnp.where(in_trie, child, 0)
            nodes.append(node)
        same_sequence = sequence[:, time:] == sequence[:, -1:]
        carry = jnp.where(same_sequence, words[:, time:], -1)
        return jnp.stack(nodes, axis=-1), carry

    def log_prob(self, tables: Tables, contexts: Context, words: jax.Array) -> jax.Array:
        self._check(contexts)
        lists = tables["word"]
        log_probs = lists["unigram"][words]
        for level in range(contexts.shape[-1]):
            node = contexts[..., level]
            log_probs += tables["log_backoff"][node]
            if len(lists["item"]):
                slot, is_listed = _find(lists["start"], lists["item"], node, words)
                value = lists["value"][jnp.minimum(slot, len(lists["value"]) - 1)]
                log_probs = jnp.where(is_listed, value, log_probs)
        return log_probs

    def log_probs(self, tables: Tables, contexts: Context) -> jax.Array:
        self._check(contexts)
        return _log_values(tables, contexts, tables["word"])

    def log_masses(
        self, tables: Tables, contexts: Context, signature: jax.Array, signatures: int
    ) -> jax.Array:
        """Computes log B(s | c), nats, [..., S], from the unigram masses and the lists."""
        self._check(contexts)
        return _log_values(tables, contexts, tables["signature"])

    def _check(self, contexts):
        """Raises ValueError unless contexts are of n-grams of this order."""
        if contexts.shape[-1] != self.order - 1:
            raise ValueError(
                f"contexts have {contexts.shape[-1]} nodes a token, and {type(self).__name__} of "
                f"order {self.order} needs {self.order - 1}: give the output of its `apply`"
            )


def _on_device(lists, is_dense, levels):
    """Converts lists to device arrays for `_log_values`, long lists to dense rows."""
    row, dense = np.zeros(len(is_dense), np.int32), []
    log_value = np.log(lists.value)
    for first, end in itertools.pairwise(levels[1:]):
        chosen = first + np.flatnonzero(is_dense[first:end])
        row[chosen] = 1 + np.arange(len(chosen))
        rows = np.full((1 + len(chosen), len(lists.unigram)), UNLISTED, np.float32)
        for number, node in enumerate(chosen, 1):
            part = slice(lists.start[node], lists.start[node + 1])
            rows[number, lists.item[part]] = log_value[part]
        dense.append(jnp.asarray(rows))
    return {
        "unigram": jnp.asarray(np.log(lists.unigram), jnp.float32),
        "start": jnp.asarray(lists.start, jnp.int32),
        "item": jnp.asarray(lists.item, jnp.int32),
        "value": jnp.asarray(log_value, jnp.float32),
        "sparse_length": jnp.asarray(np.where(is_dense, 0, np.diff(lists.start)), jnp.int32),
        "dense_row": jnp.asarray(row),
        "dense": tuple(dense),
    }


def _log_values(tables, contexts, lists):
    """Computes the log of the value of each item of `lists` under each context, nats, [..., C]."""
    shape = contexts.shape[:-1]
    nodes = contexts.reshape(math.prod(shape), contexts.shape[-1])
    # The list of a node is multiplied by the weights of the longer contexts.
    weight = jnp.cumsum(tables["log_backoff"][nodes][:, ::-1], axis=1)[:, ::-1]
    weight = jnp.pad(weight, ((0, 0), (0, 1)))
    values = weight[:, :1] + lists["unigram"][None]
    # From the shortest context to the longest, whose list has the last word.
    for level, rows in enumerate(lists["dense"]):
        node, longer = nodes[:, level], weight[:, level + 1]
        if len(rows) > 1:
            row = rows[lists["dense_row"][node]]
            values = jnp.where(row == UNLISTED, values, longer[:, None] + row)
        if node.size and len(lists["item"]):
            values = _put_lists(values, lists, node, longer)
    return values.reshape(*shape, -1)


def _first_above(ends, values):
    """Returns the index of the first of the rising ends [N], N perhaps symbolic, above each value;
    N if none is."""
    if is_known(ends.shape[0]):
        return jnp.searchsorted(ends, values, side="right")
    return (ends[None] <= values[:, None]).sum(axis=1, dtype=jnp.int32)


def _put_lists(values, lists, node, weight):
    """Sets items of values [N, C] to weight [N] + the log values in the lists of the nodes [N]."""
    # Lists of very different lengths are cut into windows: the time is proportional to the items.
    rows = node.shape[0]
    length, start = lists["sparse_length"][node], lists["start"][node]
    ends = jnp.cumsum(-(-length // WINDOW))
    chunk = at_most(WINDOWS, 4 * rows)

    def put(state: tuple[int, jax.Array]):
        first, values = state
        window = first + jnp.arange(chunk)
        owner = jnp.minimum(_first_above(ends, window), rows - 1)
        before = jnp.where(owner > 0, ends[owner - 1], 0)
        offset = (window - before)[:, None] * WINDOW + jnp.arange(WINDOW)[None]
        real = (window < ends[-1])[:, None] & (offset < length[owner][:, None])
        slot = jnp.where(real, start[owner][:, None] + offset, 0)
        listed = lists["value"][slot] + weight[owner][:, None]
        row = jnp.where(real, owner[:, None], rows)  # outside, where nothing is put
        return first + chunk, values.at[row, lists["item"][slot]].set(listed, mode="drop")

    _, values = jax.lax.while_loop(lambda state: state[0] < ends[-1], put, (0, values))
    return values


# ---- lists of words and of signatures of a back-off model, on the host
# Everything is computed in float64, so that differences of masses are precise.

# Replaces a probability that rounding has made 0 or less.
FLOOR = 1e-99
# Tables of values that are added to the backed-off ones, and of listed log-probabilities.
_ADDED = ("backoff", "unigram", "list_value")
_LISTED = ("log_backoff", "log_unigram", "list_log_prob")


@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """The listed values of a back-off model after each context. Items are words or signatures."""

    # int64 [nodes], the node of a context without its first word; node 0 has no words
    parent: np.ndarray
    backoff: np.ndarray  # [nodes], back-off weights
    unigram: np.ndarray  # [C], the value of each item after no words
    # int64 [nodes + 1]; node u lists the items item[start[u]:start[u + 1]], sorted, with the values
    # value[start[u]:start[u + 1]]
    start: np.ndarray
    item: np.ndarray  # int64 [m]
    value: np.ndarray  # [m]

    @functools.cached_property
    def node(self):
        """The node of each entry of the lists, int64 [m]."""
        return np.repeat(np.arange(len(self.parent)), np.diff(self.start))

    @functools.cached_property
    def _keys(self):
        return self.node * len(self.unigram) + self.item

    def look_up(self, nodes: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Computes the value of each item after its node, listed or backed off to."""
        size, keys = len(self.unigram), self._keys
        weight, values = np.ones(len(nodes)), np.zeros(len(nodes))
        pending, node = np.arange(len(nodes)), np.asarray(nodes, np.int64)
        while len(pending):
            key = node * size + items[pending]
            slot = np.searchsorted(keys, key)
            is_listed = np.zeros(len(key), bool)
            inside = slot < len(keys)
            is_listed[inside] = keys[slot[inside]] == key[inside]
            values[pending[is_listed]] = self.value[slot[is_listed]]
            at_end = ~is_listed & (node == 0)
            values[pending[at_end]] = self.unigram[items[pending[at_end]]]
            backs_off = ~is_listed & ~at_end
            weight[pending[backs_off]] *= self.backoff[node[backs_off]]
            pending, node = pending[backs_off], self.parent[node[backs_off]]
        return weight * values


def make_word_lists(arrays: dict[str, np.ndarray], words: int) -> Lists:
    """Makes the word lists from the tables of `prepare`, which may come from an untrusted file."""
    names = _ADDED if "list_value" in arrays else _LISTED
    try:
        parent = _parents(arrays, *names, words)
    except (IndexError, KeyError, ValueError) as error:
        raise UserError(
            f"the lexicon does not have the n-grams of its background ({error}): put back a copy "
            "of the run's lexicon.npz."
        ) from error
    starts_and_words = arrays["list_start"].astype(np.int64), arrays["list_word"].astype(np.int64)
    backoff, unigram, listed = (arrays[name].astype(np.float64) for name in names)
    if names == _ADDED:
        additions = Lists(parent, backoff, unigram, *starts_and_words, listed)
        return interpolate(additions, arrays["levels"])
    return Lists(parent, np.exp(backoff), np.exp(unigram), *starts_and_words, np.exp(listed))


def _parents(arrays, backoff, unigram, listed, words) -> np.ndarray:
    """Returns the parent of each node; ValueError unless the tables of `prepare` fit together."""
    for name in ("node_word", "node_start", "list_start", "list_word", "levels"):
        array_files.check(arrays[name], np.integer, name)
    nodes, items = len(arrays["node_word"]), len(arrays["list_word"])
    lengths = {backoff: nodes, unigram: words, listed: items}
    for name in lengths:
        array_files.check(arrays[name], np.floating, name)
    for name, length in {**lengths, "node_start": nodes + 1, "list_start": nodes + 1}.items():
        if len(arrays[name]) != length:
            raise ValueError(f"{name} has {len(arrays[name])} numbers, not {length}")
    # The children of node 0 begin at node 1.
    ends = ("node_start", 1, nodes), ("list_start", 0, items), ("levels", 0, nodes)
    for name, first, end in ends:
        starts = arrays[name].astype(np.int64) - first
        array_files.check_offsets(starts, name)
        if starts[-1] != end - first:
            raise ValueError(f"{name} ends at {arrays[name][-1]}, not {end}")
    for name in ("node_word", "list_word"):
        if ((arrays[name] < 0) | (arrays[name] >= words)).any():
            raise ValueError(f"{name} has a number that no word of {words} has")
    parent = np.repeat(np.arange(nodes), np.diff(arrays["node_start"].astype(np.int64)))
    if (parent > np.arange(nodes - 1)).any():
        raise ValueError("node_start has a node before its parent")
    return np.concatenate([[0], parent])


def interpolate(additions: Lists, levels: np.ndarray) -> Lists:
    """Sets listed(x | c) = additional(x | c) + backoff(c) b(x | c') of an interpolated model."""
    listed = additions.value.copy()
    lists = dataclasses.replace(additions, value=listed)
    # The shorter contexts come first: their lists are complete.
    for part, node in _by_length(additions, levels):
        shorter = lists.look_up(additions.parent[node], additions.item[part])
        listed[part] = np.maximum(listed[part] + additions.backoff[node] * shorter, FLOOR)
    return lists


def make_signature_lists(words: Lists, levels: np.ndarray, signature: np.ndarray) -> Lists:
    """Computes the lists of the masses of signatures: B(s | c) is listed where c lists a word of s.

    B(s | c) = sum of listed(x | c) + backoff(c) (B(s | c') - sum of b(x | c')) over the words x of
    s that c lists. The difference is the mass of the other words of s after c', 0 without any.
    """
    size = int(signature.max()) + 1
    members = np.bincount(signature, minlength=size)
    entries, entry_index = np.unique(words.node * size + signature[words.item], return_inverse=True)
    node, item = entries // size, entries % size
    start = np.searchsorted(node, np.arange(len(words.parent) + 1))
    value = np.zeros(len(entries))
    np.add.at(value, entry_index, words.value)
    has_unlisted = np.bincount(entry_index, minlength=len(entries)) < members[item]
    shorter = words.look_up(words.parent[words.node], words.item)
    shorter = np.bincount(entry_index, shorter, len(entries))
    unigram = np.bincount(signature, words.unigram, size)
    lists = Lists(words.parent, words.backoff, unigram, start, item, value)
    for part, nodes in _by_length(lists, levels):
        unlisted_mass = lists.look_up(words.parent[nodes], item[part]) - shorter[part]
        unlisted_mass = np.where(has_unlisted[part], np.maximum(unlisted_mass, 0), 0)
        value[part] += words.backoff[nodes] * unlisted_mass
    return lists


def _by_length(lists, levels):
    """Yields (slice of list entries, their nodes) of the contexts of each length, in order."""
    for first, end in itertools.pairwise(levels[1:]):
        part = slice(lists.start[first], lists.start[end])
        yield part, lists.node[part]
