"""Exact log-probabilities of many sentences; each common beginning is computed once.

The hypotheses of an n-best list begin alike. Their prefixes are a tree; its nodes are computed
depth by depth, in blocks of two shapes, whichever sentences they belong to:

    h(w_1 ... w_t) = core(h(w_1 ... w_(t-1)), w_t),    log p(w_(t+1) | h(w_1 ... w_t)).

For a softmax and the like log Z is computed once for each prefix, however many words follow it.

Only the states of two depths are held. A sentence's figures do not depend on the sentences beside
it, except for the rounding of sums in products of other shapes.
"""

import functools
import itertools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.types import Params, Tables
from zoo.data.encoded_text import EncodedText
from zoo.evaluation import progress
from zoo.evaluation.perplexity import PRECISION
from zoo.lexicon.spelling import PrefixTree, prefix_tree

# Nodes of a level are filled up to a multiple of BLOCK. While they last, LARGE blocks are computed
# together, for efficient products.
BLOCK, LARGE = 32, 4
# Sentences of a tree and their words with padding at most, which bounds the memory.
TOGETHER, WORDS = 4096, 1 << 22


def score(model, params: Params, tables: Tables, text: EncodedText, boundary: int) -> np.ndarray:
    """Computes log p of each word of a text, each sentence from the boundary and an empty state."""
    log_prob = np.full(len(text.words), np.nan, np.float32)
    sentences = progress.bar(len(text.starts), "sentences")
    with jax.default_matmul_precision(PRECISION), sentences as scored:
        prepared = model.prepared(params, tables)
        for group in _groups(text):
            lengths = text.lengths[group]
            inside = np.arange(lengths.max())[None] < lengths[:, None]
            words = np.zeros(inside.shape, np.int64)
            words[inside] = text.words[text.positions(group)]
            tree = prefix_tree(words, lengths, boundary, BLOCK)
            word_log_probs = _of_words(
                tree, lengths, _tree_scores(model, params, tables, prepared, tree, scored)
            )
            log_prob[text.positions(group)] = word_log_probs[inside]
    if text.strings is not None:  # a class has been judged; its string is a part of it
        log_prob += text.strings.log_within.astype(np.float32)
    return log_prob


def _groups(text: EncodedText) -> Iterator[np.ndarray]:
    """Yields the numbers of the sentences in each tree; sentences that begin alike are in one."""
    ends = text.starts + text.lengths
    spelled = text.words.astype(">i4")  # big-endian bytes sort like the numbers
    keys = [spelled[start:end].tobytes() for start, end in zip(text.starts, ends, strict=True)]
    group: list[int] = []
    longest = 0
    for sentence in sorted(range(len(keys)), key=keys.__getitem__):
        longest = max(longest, len(keys[sentence]) // 4)
        if group and (len(group) == TOGETHER or longest * (len(group) + 1) > WORDS):
            yield np.array(group)
            group, longest = [], len(keys[sentence]) // 4
        group.append(sentence)
    if group:
        yield np.array(group)


def _of_words(tree: PrefixTree, lengths, scores) -> np.ndarray:
    """Reads log p of each word of sentences, [sentences, longest], from the scores of a tree.

    It goes from the last word of each sentence up to the root.
    """
    log_probs = np.zeros((len(lengths), lengths.max()), np.float32)
    rows = np.arange(len(lengths))
    parents = np.concatenate([np.zeros(BLOCK, np.int32), tree.parent.ravel()])
    log_probs[rows, lengths - 1] = scores[len(parents) + rows]
    node = tree.node.copy()
    for position in range(lengths.max() - 2, -1, -1):
        there = position < lengths - 1
        log_probs[there, position] = scores[node[there]]
        node[there] = parents[node[there]]
    return log_probs


def _tree_scores(model, params, tables, prepared, tree: PrefixTree, scored) -> np.ndarray:
    """Computes the scores of a tree's slots, float32, nats.

    They are log p of the last word of each prefix, given the words before it, and then log p of the
    last word of each sentence.
    """
    advance, log_prob = compiled(model)
    depths = _depths(tree)
    starts = np.searchsorted(depths, np.arange(depths[-1] + 2))
    room = LARGE * BLOCK * _capacity(-(-int(np.diff(starts).max()) // LARGE))
    level, before = levels(model, params, tables, prepared, room)
    order = np.argsort(tree.node, kind="stable")
    scores = np.zeros(BLOCK * (1 + len(tree.parent)) + len(tree.node), np.float32)
    asked = []
    for depth, (first, end) in enumerate(itertools.pairwise(starts)):
        above = BLOCK * (1 + starts[depth - 1]) if depth else 0
        parents = np.maximum(tree.parent[first:end].ravel() - above, 0)  # padding has the parent 0
        letters = tree.letter[first:end].ravel()
        for some in chunks(len(parents)):
            rows, words = (filled(x[some], some.stop - some.start) for x in (parents, letters))
            start = np.int32(some.start)
            level = advance(params, tables, prepared, before[2], level, rows, words, start)
        nodes, targets, slots = _next_words(tree, order, first, end, starts[depth + 1 : depth + 3])
        for some in chunks(len(nodes)):
            rows, words = (filled(x[some], some.stop - some.start) for x in (nodes, targets))
            log_probs = log_prob(params, tables, prepared, outputs(level), rows, words)
            asked.append((slots[some], log_probs))
        level, before = before, level
    for slots, log_probs in asked:
        scores[slots] = np.asarray(log_probs)[: len(slots)]
        # The last words of sentences have the last slots.
        scored(int((slots >= BLOCK * (1 + len(tree.parent))).sum()))
    return scores


def chunks(rows: int) -> Iterator[slice]:
    """Yields slices of rows computed together, of two sizes; the last may end behind them."""
    start = 0
    while start < rows:
        # A large chunk that is half padding costs less than as many small chunks.
        size = LARGE * BLOCK if 2 * (rows - start) > LARGE * BLOCK else BLOCK
        yield slice(start, start + size)
        start += size


def filled(values: np.ndarray, size: int) -> np.ndarray:
    """Pads values with zeros to int32 [size]."""
    return np.pad(values, (0, size - len(values))).astype(np.int32)


def outputs(states):
    """Returns the states that log-probabilities depend on: hidden states, contexts, log Z."""
    hidden, context, _, log_z = states
    return hidden, context, log_z


def levels(model, params, tables, prepared, rows):
    """Allocates the states of nodes of two depths; the second holds those before any word."""
    return _compiled_levels(model)(params, tables, prepared, rows)


@functools.cache
def _compiled_levels(model):
    """Compiles `levels`, so that shapes are found once."""

    def allocate(params, tables, prepared, rows):
        carry = model.initial_carry(rows)
        words = jnp.zeros(rows, jnp.int32)
        after = functools.partial(states_after, model)
        shapes = jax.eval_shape(after, params, tables, prepared, words, carry)
        first, second = (
            jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes) for _ in range(2)
        )
        return first, (*second[:2], carry, second[3])

    return jax.jit(allocate, static_argnames="rows")


def _next_words(tree, order, first, end, below):
    """Returns (nodes of blocks `first` to `end`, from 0; words after them; slots of their scores).

    The words come from the blocks below and from the ends of sentences, which `order` sorts by
    node.
    """
    low, high = BLOCK * (1 + first), BLOCK * (1 + end)
    blocks = slice(*below) if len(below) == 2 else slice(0)
    parents = tree.parent[blocks].ravel()
    real = parents >= low
    last = order[slice(*np.searchsorted(tree.node[order], (low, high)))]
    nodes = np.concatenate([parents[real], tree.node[last]]) - low
    targets = np.concatenate([tree.letter[blocks].ravel()[real], tree.final[last]])
    prefix_slots = BLOCK * (1 + end) + np.flatnonzero(real)
    return nodes, targets, np.concatenate([prefix_slots, BLOCK * (1 + len(tree.parent)) + last])


def _depths(tree):
    """Computes the number of words of the prefixes in each block."""
    depths = np.zeros(len(tree.parent), np.int64)
    for number in range(1, len(depths)):
        depths[number] = depths[tree.parent[number, 0] // BLOCK - 1] + 1
    return depths


def _capacity(blocks):
    """Rounds a number of blocks up to a power of 4, so that few programs are compiled."""
    capacity = 1
    while capacity < blocks:
        capacity *= 4
    return capacity


def states_after(model, params, tables, prepared, words, carry):
    """Computes (hidden [rows, D], context, carry, log Z [rows]) after a word in each row.

    log Z is 0 where the head needs none: see `Head.target_scores`.
    """
    hidden, context, carry = model.states(params, tables, words[:, None], carry)
    hidden, context = hidden[:, 0], jax.tree.map(lambda leaf: leaf[:, 0], context)
    given = model.head_params(params), tables["head"], hidden, jnp.zeros_like(words)
    if model.head.target_scores(*given, context, prepared) is None:
        return hidden, context, carry, jnp.zeros(len(words))
    arguments = {"context": context, "prepared": prepared}
    return hidden, context, carry, model.head.log_prob_and_log_z(*given, **arguments)[1]


@functools.cache
def compiled(model):
    """Compiles (the step from a depth's carries to the next states, log p of words after nodes)."""

    def advance(params, tables, prepared, above, level, rows, words, start):
        carry = jax.tree.map(lambda leaf: leaf[rows], above)
        states = states_after(model, params, tables, prepared, words, carry)
        return jax.tree.map(
            lambda room, new: jax.lax.dynamic_update_slice_in_dim(room, new, start, 0),
            level,
            states,
        )

    def log_prob(params, tables, prepared, states, rows, targets):
        hidden, context, log_z = jax.tree.map(lambda leaf: leaf[rows], states)
        given = model.head_params(params), tables["head"], hidden, targets
        scores = model.head.target_scores(*given, context, prepared)
        if scores is not None:
            return scores - log_z
        return model.head.log_prob(*given, context=context, prepared=prepared)

    return jax.jit(advance, donate_argnames="level"), jax.jit(log_prob)
