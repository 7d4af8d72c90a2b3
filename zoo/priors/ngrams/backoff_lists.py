"""Lists of words and of signatures of a back-off model (zoo.priors.ngrams.backoff), on the host.

Everything is computed in float64, so that differences of masses are precise.
"""

import dataclasses
import functools
import itertools

import numpy as np

# Replaces a probability that rounding has made 0 or less.
LEAST = 1e-99


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

    @property
    def log_unigram(self):
        """log of the unigram values, nats, [C]."""
        return np.log(self.unigram)

    @property
    def log_value(self):
        """log of the listed values, nats, [m]."""
        return np.log(self.value)

    @functools.cached_property
    def node(self):
        """The node of each entry of the lists, int64 [m]."""
        return np.repeat(np.arange(len(self.parent)), np.diff(self.start))

    @functools.cached_property
    def _keys(self):
        return self.node * len(self.unigram) + self.item

    def of(self, nodes, items):
        """Computes the value of each item after its node, listed or backed off to."""
        size, keys = len(self.unigram), self._keys
        weight, values = np.ones(len(nodes)), np.zeros(len(nodes))
        left, node = np.arange(len(nodes)), np.asarray(nodes, np.int64)
        while len(left):
            key = node * size + items[left]
            slot = np.searchsorted(keys, key)
            there = np.zeros(len(key), bool)
            inside = slot < len(keys)
            there[inside] = keys[slot[inside]] == key[inside]
            values[left[there]] = self.value[slot[there]]
            at_end = ~there & (node == 0)
            values[left[at_end]] = self.unigram[items[left[at_end]]]
            on = ~there & ~at_end
            weight[left[on]] *= self.backoff[node[on]]
            left, node = left[on], self.parent[node[on]]
        return weight * values


def parents(node_start):
    """Computes the parent of each node."""
    counts = np.diff(node_start.astype(np.int64))
    return np.concatenate([[0], np.repeat(np.arange(len(counts)), counts)])


def of_words(kept: dict[str, np.ndarray]) -> Lists:
    """Makes the lists of words from the tables of `backoff.prepare` or `backoff.prepare_listed`."""
    parent = parents(kept["node_start"])
    starts_and_words = kept["list_start"].astype(np.int64), kept["list_word"].astype(np.int64)
    if "list_value" in kept:  # values that are added to the backed-off values
        names = ("backoff", "unigram", "list_value")
        backoff, unigram, additions = (kept[name].astype(np.float64) for name in names)
        return of_additions(
            Lists(parent, backoff, unigram, *starts_and_words, additions), kept["levels"]
        )
    names = ("log_backoff", "log_unigram", "list_log_prob")
    backoff, unigram, listed = (np.exp(kept[name].astype(np.float64)) for name in names)
    return Lists(parent, backoff, unigram, *starts_and_words, listed)


def of_additions(additions: Lists, levels) -> Lists:
    """Sets listed(x | c) = additional(x | c) + backoff(c) b(x | c') of an interpolated model."""
    listed = additions.value.copy()
    lists = dataclasses.replace(additions, value=listed)
    # The shorter contexts come first: their lists are complete.
    for part, node in _by_length(additions, levels):
        shorter = lists.of(additions.parent[node], additions.item[part])
        listed[part] = np.maximum(listed[part] + additions.backoff[node] * shorter, LEAST)
    return lists


def of_signatures(words: Lists, levels, signature) -> Lists:
    """Computes the lists of the masses of signatures: B(s | c) is listed where c lists a word of s.

    B(s | c) = sum of listed(x | c) + backoff(c) (B(s | c') - sum of b(x | c')) over the words x of
    s that c lists. The difference is the mass of the other words of s after c', 0 without any.
    """
    size = int(signature.max()) + 1
    members = np.bincount(signature, minlength=size)
    entries, of_entry = np.unique(words.node * size + signature[words.item], return_inverse=True)
    node, item = entries // size, entries % size
    start = np.searchsorted(node, np.arange(len(words.parent) + 1))
    value = np.zeros(len(entries))
    np.add.at(value, of_entry, words.value)
    has_others = np.bincount(of_entry, minlength=len(entries)) < members[item]
    shorter = words.of(words.parent[words.node], words.item)
    shorter = np.bincount(of_entry, shorter, len(entries))
    unigram = np.bincount(signature, words.unigram, size)
    lists = Lists(words.parent, words.backoff, unigram, start, item, value)
    for part, nodes in _by_length(lists, levels):
        others = lists.of(words.parent[nodes], item[part]) - shorter[part]
        others = np.where(has_others[part], np.maximum(others, 0), 0)
        value[part] += words.backoff[nodes] * others
    return lists


def _by_length(lists, levels):
    """Yields (slice of the entries of their lists, nodes of these entries) for each length."""
    for first, end in itertools.pairwise(levels[1:]):
        part = slice(lists.start[first], lists.start[end])
        yield part, lists.node[part]
