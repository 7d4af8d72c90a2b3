"""Log-probabilities of sentences: the lines of a text, or the hypotheses of n-best lists.

    log p(w_1 ... w_n </s>) = sum_t log p(w_t | w_<t) + log p(</s> | w_1 ... w_n),

each sentence from the boundary and an empty state. `zoo.lab.evaluation.nbest` reads n-best lists.
"""

import collections
import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.types import Params, Tables
from zoo.data import Corpus
from zoo.data.batches import Batches, fit
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.evaluation import perplexity
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.table import user_columns
from zoo.lexicon.spelling import PrefixTree, prefix_tree
from zoo.sources import files, text_formats
from zoo.sources.tokens import Sentence

LINE_BREAK = "\n"
COLUMNS = ("line", "words", "unknown", "log_prob", "log_prob_known")


class Row(NamedTuple):
    """The score of a sentence."""

    sentence: str
    words: int
    unknown: int
    log_prob: float  # log p(w_1 ... w_n </s>), nats
    log_prob_known: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SentenceScores:
    """Arrays [n] of the scores of n sentences."""

    words: np.ndarray
    unknown: np.ndarray
    lexicon_log_prob: np.ndarray  # float64, nats, the sum of log p over the words of the lexicon
    unknown_log_prob: np.ndarray  # float64, nats, the sum of log p over the words read as <unk>
    boundary_log_prob: np.ndarray  # float64, nats, the sum of log p over the boundaries after them

    def __repr__(self):
        return f"SentenceScores({len(self.words):,} sentences, {self.words.sum():,} words)"

    @property
    def word_log_prob(self) -> np.ndarray:
        """Sum of log p over the words, without the boundaries, float64 [n], nats."""
        return self.lexicon_log_prob + self.unknown_log_prob

    @property
    def log_prob(self) -> np.ndarray:
        """log p of each sentence, float64 [n], nats."""
        return self.word_log_prob + self.boundary_log_prob

    def rows(self, sentences: Sequence[str]) -> list[Row]:
        """Returns a row for each sentence."""
        arrays = self.words, self.unknown, self.log_prob, self.log_prob_known
        columns = (array.tolist() for array in arrays)
        return [Row(*values) for values in zip(sentences, *columns, strict=True)]

    @property
    def log_prob_known(self) -> np.ndarray:
        """log p of each sentence without the factors of unknown words, float64 [n], nats."""
        return self.lexicon_log_prob + self.boundary_log_prob


def ranks(ids: list[str], log_prob: np.ndarray) -> np.ndarray:
    """Ranks each hypothesis in its list, int64 [n]: 1 for the most probable, the earlier of two."""
    lists = collections.defaultdict(list)
    for row, name in enumerate(ids):
        lists[name].append(row)
    rank_of = np.empty(len(ids), np.int64)
    for rows in lists.values():
        order = np.argsort(-log_prob[rows], kind="stable")
        rank_of[np.array(rows)[order]] = np.arange(1, len(rows) + 1)
    return rank_of


def table(
    sentences: Sequence[Sentence],
    scores: SentenceScores,
    columns: tuple[str, ...] = (),
    unit: float = 1.0,
    ranked: bool = False,
) -> tuple[tuple, list[tuple]]:
    """Returns (column names, a row for each sentence), log p in units of `unit` nats; `columns` are
    the sentences' own."""
    values = (scores.words, scores.unknown, scores.log_prob / unit, scores.log_prob_known / unit)
    ids = [sentence.id for sentence in sentences if sentence.id is not None]
    lines = [sentence.line for sentence in sentences]
    cells: dict[str, Any] = {"id": ids} if ids else {}
    cells |= dict(zip(COLUMNS, (lines, *values), strict=True))
    if ranked:
        cells["rank"] = ranks(ids, scores.log_prob)
    extras = (sentence.extra for sentence in sentences)
    rows = [(*row, *extra) for *row, extra in zip(*cells.values(), extras, strict=True)]
    return (*cells, *user_columns((*cells,), columns)), rows


def score(
    run, sentences: Sequence[Sequence[str]], name: str, prefixes: Sequence | None = None
) -> SentenceScores:
    """Scores sentences of words or characters under a run, each from an empty state, or their words
    after prefixes, without the boundary."""
    before = prefixes or [()] * len(sentences)
    pairs = [(tuple(prefix), tuple(words)) for prefix, words in zip(before, sentences, strict=True)]
    distinct = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    text, log_prob = _scored(run, [[*prefix, *words] for prefix, words in distinct], name)
    count = len(text.starts)
    sentence = np.repeat(np.arange(count), text.lengths)
    begins, lengths = np.zeros((2, count), np.int64)
    begins[: len(distinct)] = [len(prefix) for prefix, _ in distinct]
    lengths[: len(distinct)] = [len(words) for _, words in distinct]
    place = np.arange(len(text.words)) - text.starts[sentence] - begins[sentence]
    is_word = (place >= 0) & (place < lengths[sentence])
    unread = text.unknown(run.lexicon) & is_word
    ends = (place >= lengths[sentence]) & (prefixes is None)

    def part(chosen):
        return np.bincount(sentence, np.where(chosen, log_prob, 0).astype(np.float64), count)

    unknown = np.bincount(sentence, unread, count).astype(np.int64)
    parts = (part(is_word & ~unread), part(unread), part(ends))
    back = np.array([distinct[pair] for pair in pairs], np.int64)
    return SentenceScores(*(array[back] for array in (lengths, unknown, *parts)))


def word_log_probs(run, sentences: Sequence[list[str]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Computes log p of each word and boundary of sentences, and where each sentence starts."""
    text, log_prob = _scored(run, [*sentences], name)
    ends = [*text.starts, len(log_prob)]
    return log_prob[: ends[len(sentences)]].astype(np.float64), text.starts[: len(sentences)]


def _scored(run, sentences, name):
    """Returns (sentences as word ids, log p of each word), a word beside them where all are empty:
    a text must have words."""
    lexicon, experiment = run.lexicon, run.experiment
    breaks = lexicon.is_character_level and LINE_BREAK in lexicon.ids
    first = lexicon.boundary or (LINE_BREAK if breaks else None)
    if first is None:
        raise UserError(
            f"a sentence is scored from the boundary on, and {run.path} has none: train with "
            "vocabulary.boundary=counted or uncounted."
        )
    beside = [] if any(sentences) else [[lexicon.words[0]]]
    text = experiment.vocabulary.encode(Corpus(name, [*sentences, *beside]), lexicon)
    model_arguments = experiment.language_model, run.params, run.tables
    if len(text.starts) > BLOCK:
        return text, score_tree(*model_arguments, text, lexicon.ids[first])
    shape = fit(text.lengths, BLOCK, experiment.evaluation.length)
    batches = Batches(text, *shape, "sentences", lexicon.ids[first])
    return text, perplexity.score(*model_arguments, text, batches).log_prob


def words_by(run, text: str) -> list[str]:
    """Splits a hypothesis into the words that a run reads, or into characters if it reads these."""
    if not run.lexicon.is_character_level:
        return run.reading.split(text)
    text = files.bare(text)
    text = text.lower() if run.experiment.vocabulary.lower_case else text
    ids = run.lexicon.ids
    # Not every lexicon has blanks, as in Chinese, or line breaks, which end a line.
    characters = [letter for letter in text if letter != " " or letter in ids]
    return [*characters, *([LINE_BREAK] if LINE_BREAK in ids else [])]


def check_hypotheses(run):
    """Raises UserError unless a run scores hypotheses: sentences, or lines of characters."""
    if not run.lexicon.is_character_level:
        check_run(run)


def check_lines(sentences: Iterable[str | Sequence[str]]):
    """Raises UserError if sentences have line breaks, or are the lines of a treebank or table."""
    lines = [sentence if isinstance(sentence, str) else "" for sentence in sentences]
    kind = text_formats.detect_form(pathlib.Path("-"), "\n".join(lines[:1000]))
    for number, line in enumerate(lines, 1):
        if "\n" in line.strip() or kind != "plain":
            problem = "has several lines" if "\n" in line.strip() else f"is of a {kind}"
            raise UserError(
                f"sentence {number} {problem}: give sentences, such as the lines of a plain text; "
                "surprisal reads the content of a treebank or table, and zoo score such a file."
            )


def check_run(run):
    """Raises UserError unless a run's texts are plain sentences of words."""
    _ = run.experiment.language_model  # a UserError for a translator
    if run.lexicon.is_character_level:
        raise UserError(
            f"the words of {run.path} are characters, blanks among them, and words between blanks "
            "are scored: score its words with python -m zoo score DIR FILE --words."
        )
    if any(source.form.separator for source in run.experiment.data.texts()):
        raise UserError(
            f"{run.path} was trained on what follows a question or a condition, not on sentences: "
            "score its words with python -m zoo score DIR FILE --words."
        )


# ------- exact log-probabilities of many sentences; each common beginning is computed once
# The hypotheses of an n-best list begin alike. Their prefixes are a tree; its nodes are computed
# depth by depth, in blocks of two shapes, whichever sentences they belong to:
#
#     h(w_1 ... w_t) = core(h(w_1 ... w_(t-1)), w_t),    log p(w_(t+1) | h(w_1 ... w_t)).
#
# Few sentences are rows of one batch instead: one call, and no more nodes than blocks have.
#
# For a softmax and the like log Z is computed once for each prefix, however many words follow it.
#
# Only the states of two depths are held. A sentence's figures do not depend on the sentences beside
# it, except for the rounding of sums in products of other shapes.

# Nodes of a level are filled up to a multiple of BLOCK. While they last, LARGE blocks are computed
# together, for efficient products.
BLOCK, LARGE = 32, 4
# Sentences of a tree and their words with padding at most, which bounds the memory.
TOGETHER, WORDS = 4096, 1 << 22


def score_tree(
    model, params: Params, tables: Tables, text: EncodedText, boundary: int
) -> np.ndarray:
    """Computes log p of each word of a text, each sentence from the boundary and an empty state."""
    log_prob = np.full(len(text.words), np.nan, np.float32)
    sentences = perplexity.bar(len(text.starts), "sentences")
    with jax.default_matmul_precision(PRECISION), sentences as scored:
        prepared = model.prepared(params, tables)
        for group in _groups(text):
            lengths = text.lengths[group]
            inside = np.arange(lengths.max())[None] < lengths[:, None]
            words = np.zeros(inside.shape, np.int64)
            words[inside] = text.words[text.positions(group)]
            tree = prefix_tree(words, lengths, boundary, BLOCK)
            word_log_probs = _read_log_probs(
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


def _read_log_probs(tree: PrefixTree, lengths, scores) -> np.ndarray:
    """Reads log p of each word of sentences, [sentences, longest], from the scores of a tree."""
    log_probs = np.zeros((len(lengths), lengths.max()), np.float32)
    rows = np.arange(len(lengths))
    parents = np.concatenate([np.zeros(BLOCK, np.int32), tree.parent.ravel()])
    log_probs[rows, lengths - 1] = scores[len(parents) + rows]
    node = tree.node.copy()
    for position in range(lengths.max() - 2, -1, -1):
        is_inside = position < lengths - 1
        log_probs[is_inside, position] = scores[node[is_inside]]
        node[is_inside] = parents[node[is_inside]]
    return log_probs


def _tree_scores(model, params, tables, prepared, tree: PrefixTree, scored) -> np.ndarray:
    """Computes the scores of a tree's slots: log p of each prefix's last word, then sentences'."""
    advance, log_prob = compile_steps(model)
    depths = _depths(tree)
    starts = np.searchsorted(depths, np.arange(depths[-1] + 2))
    room = LARGE * BLOCK * _capacity(-(-int(np.diff(starts).max()) // LARGE))
    level, before = compile_levels(model)(params, tables, prepared, room)
    order = np.argsort(tree.node, kind="stable")
    scores = np.zeros(BLOCK * (1 + len(tree.parent)) + len(tree.node), np.float32)
    pending = []
    for depth, (first, end) in enumerate(itertools.pairwise(starts)):
        above = BLOCK * (1 + starts[depth - 1]) if depth else 0
        parents = np.maximum(tree.parent[first:end].ravel() - above, 0)  # padding has the parent 0
        letters = tree.letter[first:end].ravel()
        for chunk in chunks(len(parents)):
            rows, words = (pad(x[chunk], chunk.stop - chunk.start) for x in (parents, letters))
            start = np.int32(chunk.start)
            level = advance(params, tables, prepared, before[2], level, rows, words, start)
        nodes, targets, slots = _next_words(tree, order, first, end, starts[depth + 1 : depth + 3])
        for chunk in chunks(len(nodes)):
            rows, words = (pad(x[chunk], chunk.stop - chunk.start) for x in (nodes, targets))
            log_probs = log_prob(params, tables, prepared, outputs(level), rows, words)
            pending.append((slots[chunk], log_probs))
        level, before = before, level
    for slots, log_probs in pending:
        scores[slots] = np.asarray(log_probs)[: len(slots)]
        # The last words of sentences have the last slots.
        scored(int((slots >= BLOCK * (1 + len(tree.parent))).sum()))
    return scores


def chunks(rows: int) -> Iterator[slice]:
    """Yields slices of rows to compute together, of two sizes; the last may exceed the rows."""
    start = 0
    while start < rows:
        # A large chunk that is half padding costs less than as many small chunks.
        size = LARGE * BLOCK if 2 * (rows - start) > LARGE * BLOCK else BLOCK
        yield slice(start, start + size)
        start += size


def pad(values: np.ndarray, size: int) -> np.ndarray:
    """Pads values with zeros to int32 [size]."""
    return np.pad(values, (0, size - len(values))).astype(np.int32)


def outputs(states):
    """Returns the states that log-probabilities depend on: hidden states, contexts, log Z."""
    hidden, context, _, log_z = states
    return hidden, context, log_z


@functools.cache
def compile_levels(model):
    """Compiles a function that allocates the states of the nodes of two depths; in the second are
    the states before any word."""

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
    """Returns (nodes of blocks `first` to `end`, words after them, slots of their scores)."""
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
    """Computes (hidden [rows, D], context, carry, log Z [rows], 0 where the head needs none) after
    a word in each row."""
    hidden, context, carry = model.states(params, tables, words[:, None], carry)
    hidden, context = hidden[:, 0], jax.tree.map(lambda leaf: leaf[:, 0], context)
    head_arguments = model.head_params(params), tables["head"], hidden, jnp.zeros_like(words)
    if model.head.target_scores(*head_arguments, context, prepared) is None:
        return hidden, context, carry, jnp.zeros(len(words))
    arguments = {"context": context, "prepared": prepared}
    return hidden, context, carry, model.head.log_prob_and_log_z(*head_arguments, **arguments)[1]


@functools.cache
def compile_steps(model):
    """Compiles (the step from a depth's carries to the next states, log p of the next words)."""

    def advance(params, tables, prepared, above, level, rows, words, start):
        carry = jax.tree.map(lambda leaf: leaf[rows], above)
        states = states_after(model, params, tables, prepared, words, carry)
        return jax.tree.map(
            lambda room, update: jax.lax.dynamic_update_slice_in_dim(room, update, start, 0),
            level,
            states,
        )

    def log_prob(params, tables, prepared, states, rows, targets):
        hidden, context, log_z = jax.tree.map(lambda leaf: leaf[rows], states)
        head_arguments = model.head_params(params), tables["head"], hidden, targets
        scores = model.head.target_scores(*head_arguments, context, prepared)
        if scores is not None:
            return scores - log_z
        return model.head.log_prob(*head_arguments, context=context, prepared=prepared)

    return jax.jit(advance, donate_argnames="level"), jax.jit(log_prob)
