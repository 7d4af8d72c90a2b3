"""Beam search over a batch of sentences, compiled once a shape.

At each length the `beam` most probable unfinished hypotheses of a sentence are kept open. The best
finished hypotheses, as many as are wanted, are kept apart, and never lost to open ones. An open
hypothesis ends if its end is among the `beam` most probable of all continuations.

Scores are log-probabilities, perhaps normalised by length. A hypothesis is at most as probable as
each of its beginnings, and the normaliser is largest at the greatest length n*:

    log p(w_1 ... w_n) / norm(n)  <=  log p(w_1 ... w_t) / norm(n*),    t <= n <= n*.

The right side is the bound of an open hypothesis. If it is not above the last of the wanted
finished hypotheses, the open one cannot win any more; the search stops when this holds for all. And
if no dropped hypothesis has a bound above the last returned score, the search is known to have been
exact.

By the same inequality the step is only called for open hypotheses that can still contribute one of
the `beam` best longer ones, of sentences that are not finished. This does not change the result;
the model's products are nearly the whole cost of a search.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.decoding.steps import Step, as_tree, check_boundary
from zoo.errors import UserError

# Greatest number of rows of a call of the step: enough to make a model's products cheap a row, few
# enough to leave out hypotheses that do not matter.
ROWS = 64
# Updates of `threshold` at a length, at most twice as many: each of them reads all extensions.
BOUNDS = 8


class Hypotheses(NamedTuple):
    """The N hypotheses of each of B sentences, in the order of falling scores.

    Attributes:
      words: int32 [B, N, longest], filled up with the boundary.
      log_probs: [B, N, longest], nats, of each token given the tokens before; 0 after the last.
      log_prob: [B, N], nats, their sum; -inf where a sentence has no more hypotheses.
      score: [B, N], `log_prob` divided by the normaliser of the length.
      lengths: int32 [B, N], tokens, with the boundary; 0 without a hypothesis.
      complete: bool [B, N], whether it ended by the boundary, and not at the greatest length.
      missed: [B], an upper bound of the scores of all hypotheses that the beam dropped. Where it is
        not above the last score, these are the best of all hypotheses.
    """

    words: jax.Array
    log_probs: jax.Array
    log_prob: jax.Array
    score: jax.Array
    lengths: jax.Array
    complete: jax.Array
    missed: Any


def check_lengths(shortest: int, longest: int):
    if not 1 <= shortest <= longest:
        raise UserError(
            f"shortest {shortest} and longest {longest} cannot bound a length in tokens: give "
            "1 <= shortest <= longest."
        )


def length_limits(
    longest: jax.Array | np.ndarray | None, sentences: int, settings: Any
) -> jax.Array:
    """Returns each sentence's greatest length, int32 [B], within the settings' range; 0 stays."""
    if longest is None:
        return jnp.full(sentences, settings.longest, jnp.int32)
    limits = jnp.asarray(longest, jnp.int32)
    return jnp.where(limits == 0, 0, jnp.clip(limits, settings.shortest, settings.longest))


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """Searches for the hypotheses w_1 ... w_n of the highest score,

        score = sum_j log p(w_j | w_<j) / norm(n),    norm(n) = n^alpha.

    w_n is the boundary, the only one, or n = longest. Lengths count tokens, the boundary among
    them.

    Attributes:
      beam: number of hypotheses kept open at each length.
      nbest: number of hypotheses returned.
      length_normalisation: alpha, 0 or more; 0 ranks by log p, which favours short hypotheses.
      shortest: least number of tokens of a hypothesis; 2 asks for a word before the boundary.
      longest: greatest number of tokens. A hypothesis that reaches it without the boundary is kept,
        ranked with the others, and not `complete`.
      every_end: keeps the end of each open hypothesis, however improbable beside its other
        continuations. The search then finds more hypotheses, of a translator mostly translations
        that are too short. A beam of 1 is then not greedy decoding, as it is otherwise without
        length normalisation.

    Raises:
      UserError: a number is out of range; nbest is above beam.

    Example:
      >>> search = decoding.BeamSearch(beam=3, nbest=2, longest=4)
      >>> hypotheses = search.search(step, first, carry, boundary=0)
      >>> hypotheses.words[0].tolist()
      [[1, 0, 0, 0], [2, 0, 0, 0]]
      >>> print(jnp.exp(hypotheses.log_prob[0]))
      [0.3  0.24]
    """

    beam: int = 12
    nbest: int = 1
    length_normalisation: float = 0.0
    shortest: int = 1
    longest: int = 200
    every_end: bool = False

    def __post_init__(self):
        if not 1 <= self.nbest <= self.beam:
            raise UserError(
                f"a beam of {self.beam} cannot find {self.nbest} hypotheses: give 1 to "
                f"{max(self.beam, 1)}, or a wider beam."
            )
        if not 0 <= self.length_normalisation < math.inf:
            raise UserError(
                f"length_normalisation is {self.length_normalisation}: give 0 or a number above it."
            )
        check_lengths(self.shortest, self.longest)

    def norm(self, lengths: jax.Array) -> jax.Array:
        """Returns the normaliser of hypotheses' lengths, which divides log-probabilities."""
        return lengths**self.length_normalisation

    def search(
        self,
        step: Step,
        words: jax.Array | np.ndarray,
        carry: Any,
        *,
        boundary: int,
        longest: jax.Array | np.ndarray | None = None,
    ) -> Hypotheses:
        """Returns the best hypotheses of each sentence.

        Args:
          step: see `zoo.decoding.steps`; its log-probabilities are at most 0. It is called
            with some open hypotheses at a time, in any order.
          words: int32 [B], the word before the first of each sentence.
          carry: the state before it, every leaf [B, ...].
          boundary: the word that ends a hypothesis.
          longest: int [B], the greatest length of each sentence, from `shortest` to the field
            `longest`, the default. A sentence with 0 is not searched, and has no hypotheses.

        Raises:
          ValueError: `words` is empty; the carry, or the step's result, has other shapes; or
            the boundary is not a word.
        """
        words = jnp.asarray(words, jnp.int32)
        if not len(words):
            raise ValueError("words has no sentences: give at least one")
        limits = length_limits(longest, len(words), self)
        for leaf in jax.tree.leaves(carry):
            if jnp.shape(leaf)[:1] != words.shape:
                raise ValueError(
                    f"a leaf of the carry has the shape {jnp.shape(leaf)}: give leaves whose first "
                    f"axis has the {len(words)} sentences"
                )
        return _search(as_tree(step), words, carry, limits, settings=self, boundary=boundary)


class _State(NamedTuple):
    """The state of a search after some tokens."""

    time: jax.Array
    words: jax.Array  # of the open hypotheses, [B, K, longest]
    log_probs: jax.Array  # of their words, [B, K, longest], nats
    # of the open hypotheses, the most probable first, [B, K], nats; -inf for an empty row
    log_prob: jax.Array
    last: jax.Array  # the last word of each open hypothesis, int32 [B, K]
    finished: Hypotheses  # whose `missed` is ()
    missed: jax.Array  # [B], see `Hypotheses`
    carry: Any  # every leaf [slots, ...]
    slots: jax.Array  # the slot of each open hypothesis's carry, int32 [B, K]


class _Extensions(NamedTuple):
    """Results of the step for the open hypotheses that it was called for."""

    is_extended: jax.Array  # whether the step was called for it, bool [B, K]
    # log p of the most probable unfinished hypotheses one word longer than each, [B, K, K + 1],
    # nats
    log_prob: jax.Array
    word_log_probs: jax.Array  # of their last words, [B, K, K + 1], nats
    words: jax.Array  # their last words, int32 [B, K, K + 1]
    end_log_probs: jax.Array  # of the boundary after each, [B, K], nats
    threshold: jax.Array  # the (K + 1)-th of all `log_prob` some calls ago, [B], nats
    carry: Any  # after the last word of each, leaves [slots, ...]
    slots: jax.Array  # the slot of each hypothesis's carry, int32 [B, K]
    slot_count: jax.Array  # slots that have a carry


def _take_rows(leaf, rows):
    """Selects rows: leaf [B, n, ...], rows [B, m] -> [B, m, ...]."""
    return leaf[jnp.arange(len(leaf))[:, None], rows]


def _extend(state, step, settings, boundary, rows):
    """Extends the hypotheses that matter by a word, calling the step with `rows` rows at a time.

    A hypothesis is never more probable than its beginning. So the step is called first for the most
    probable hypotheses of each sentence. Once K + 1 longer hypotheses are known to be more probable
    than all hypotheses that were not extended, the step is not called for the rest of the sentence,
    nor for finished sentences. With `every_end` all open hypotheses are extended.
    """
    sentences, beam = state.log_prob.shape
    width = beam + 1
    interval = max(1, sentences * beam // (BOUNDS * rows))

    def is_pending(extensions):
        is_open = (state.log_prob > -jnp.inf) & ~extensions.is_extended
        return is_open & (state.log_prob >= extensions.threshold[:, None])

    def call_step(extensions):
        """Extends the most probable pending hypotheses: the next `rows` of all sentences."""
        # The first hypothesis of each sentence, then the second; empty rows come last.
        pending = is_pending(extensions).T.ravel()
        (indices,) = jnp.nonzero(pending, size=rows, fill_value=sentences * beam)
        indices = indices.astype(jnp.int32)
        position = indices % sentences, indices // sentences
        log_prob, last, slots = (
            array.at[position].get(mode="clip")
            for array in (state.log_prob, state.last, state.slots)
        )
        log_probs, carry = step(last, jax.tree.map(lambda leaf: leaf[slots], state.carry))
        check_boundary(boundary, log_probs)
        log_probs = log_probs.astype(log_prob.dtype)
        is_boundary = jnp.arange(log_probs.shape[1])[None] == boundary
        word_log_probs, words = top_k(jnp.where(is_boundary, -jnp.inf, log_probs), width)
        words = jnp.minimum(words, log_probs.shape[1] - 1)  # where V is smaller

        def scatter(array, values):
            return array.at[position].set(values, mode="drop")

        longer_log_prob = scatter(extensions.log_prob, log_prob[:, None] + word_log_probs)
        slot_count = extensions.slot_count
        threshold = jax.lax.cond(
            not settings.every_end and slot_count // rows % interval == interval - 1,
            lambda: top_k(longer_log_prob.reshape(sentences, -1), width)[0][:, -1],
            lambda: extensions.threshold,
        )
        return _Extensions(
            is_extended=scatter(extensions.is_extended, True),
            log_prob=longer_log_prob,
            word_log_probs=scatter(extensions.word_log_probs, word_log_probs),
            words=scatter(extensions.words, words),
            end_log_probs=scatter(extensions.end_log_probs, log_probs[:, boundary]),
            threshold=threshold,
            carry=jax.tree.map(
                lambda slots, leaf: jax.lax.dynamic_update_slice_in_dim(slots, leaf, slot_count, 0),
                extensions.carry,
                carry,
            ),
            slots=scatter(extensions.slots, slot_count + jnp.arange(rows, dtype=jnp.int32)),
            slot_count=slot_count + rows,
        )

    impossible = jnp.full((sentences, beam, width), -jnp.inf, state.log_prob.dtype)
    empty = _Extensions(
        is_extended=jnp.zeros(state.log_prob.shape, bool),
        log_prob=impossible,
        word_log_probs=impossible,
        words=jnp.zeros(impossible.shape, jnp.int32),
        end_log_probs=impossible[..., 0],
        threshold=impossible[:, 0, 0],
        carry=jax.tree.map(jnp.zeros_like, state.carry),
        slots=jnp.zeros(state.slots.shape, jnp.int32),
        slot_count=jnp.zeros((), jnp.int32),
    )
    return jax.lax.while_loop(lambda extensions: is_pending(extensions).any(), call_step, empty)


def _find_competing_ends(ends, best):
    """Returns bool [B, K]: which ends are among the K most probable continuations of a sentence.

    ends, best: log p of the ends, and of the K most probable other continuations, [B, K] each.
    Among equally probable continuations the ends come first.
    """
    ranks = jnp.arange(ends.shape[1])
    end, rival = ends[:, :, None], ends[:, None, :]
    before = (rival == end) & (ranks[None, None, :] < ranks[None, :, None])
    ahead = ((rival > end) | before).sum(axis=-1) + (best[:, None, :] > end).sum(axis=-1)
    return ahead < ends.shape[1]


def _advance(state, step, limits, settings, boundary, rows):
    """Returns the state of the search after one more token of every open hypothesis."""
    sentences, beam = state.log_prob.shape
    extensions = _extend(state, step, settings, boundary, rows)
    length = state.time + 1

    def make_hypotheses(words, log_probs, log_prob, complete):
        return Hypotheses(
            words,
            log_probs,
            log_prob,
            log_prob / settings.norm(length),
            jnp.full(log_prob.shape, length),
            jnp.full(log_prob.shape, complete),
            missed=(),
        )

    # Besides the beam, the best of the dropped hypotheses.
    best, indices = top_k(extensions.log_prob.reshape(sentences, -1), beam + 1)
    bound = best / settings.norm(limits)[:, None]
    missed = jnp.maximum(state.missed, bound[:, -1])
    best, bound, indices = (array[:, :beam] for array in (best, bound, indices))
    ranks = jax.lax.broadcasted_iota(jnp.int32, extensions.log_prob.shape, 1)
    parents, last, last_log_probs = (
        jnp.take_along_axis(array.reshape(sentences, -1), indices, axis=1)
        for array in (ranks, extensions.words, extensions.word_log_probs)
    )
    ends = jnp.where(
        length >= settings.shortest, state.log_prob + extensions.end_log_probs, -jnp.inf
    )
    if not settings.every_end:
        is_competing = _find_competing_ends(ends, best)
        dropped_score = jnp.where(is_competing, -jnp.inf, ends).max(axis=1) / settings.norm(length)
        missed = jnp.maximum(missed, dropped_score)
        ends = jnp.where(is_competing, ends, -jnp.inf)
    ended = make_hypotheses(
        state.words,  # filled up with the boundary
        state.log_probs.at[:, :, state.time].set(extensions.end_log_probs),
        ends,
        True,
    )
    words = _take_rows(state.words, parents).at[:, :, state.time].set(last)
    log_probs = _take_rows(state.log_probs, parents).at[:, :, state.time].set(last_log_probs)
    at_limit = (length >= limits)[:, None]
    truncated = make_hypotheses(words, log_probs, jnp.where(at_limit, best, -jnp.inf), False)
    finished = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves, axis=1), state.finished, ended, truncated
    )
    _, best_of_all = jax.lax.top_k(finished.score, settings.nbest)  # of equal scores the first
    finished = jax.tree.map(lambda leaf: _take_rows(leaf, best_of_all), finished)
    is_hopeless = bound <= finished.score[:, -1:]
    return _State(
        time=length,
        words=words,
        log_probs=log_probs,
        log_prob=jnp.where(at_limit | is_hopeless, -jnp.inf, best),
        last=last,
        finished=finished,
        missed=missed,
        carry=extensions.carry,
        slots=_take_rows(extensions.slots, parents),
    )


@functools.partial(jax.jit, static_argnames=("settings", "boundary"))
def _search(step, words, carry, limits, *, settings, boundary):
    """Searches as `BeamSearch.search`, after its checks; limits: greatest lengths, int32 [B]."""
    sentences, beam, length = len(words), settings.beam, settings.longest
    rows = min(sentences * beam, ROWS)
    last = jnp.repeat(words[:, None], beam, axis=1)
    slots = jnp.repeat(jnp.arange(sentences, dtype=jnp.int32)[:, None], beam, axis=1)
    # Slots for whole calls of the step.
    spare_slots = -(-sentences * beam // rows) * rows - sentences
    carry = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, spare_slots),) + ((0, 0),) * (leaf.ndim - 1)), carry
    )
    output, _ = jax.eval_shape(step, last.ravel()[:rows], jax.tree.map(lambda a: a[:rows], carry))
    if len(output.shape) != 2 or len(output) != rows:
        raise ValueError(
            f"the step gives log_probs of the shape {output.shape} for {rows} rows: give the "
            "shape [rows, V]"
        )
    dtype = jnp.promote_types(output.dtype, jnp.float32)

    def empty_hypotheses(count):
        return Hypotheses(
            jnp.full((sentences, count, length), boundary, jnp.int32),
            jnp.zeros((sentences, count, length), dtype),
            jnp.full((sentences, count), -jnp.inf, dtype),
            jnp.full((sentences, count), -jnp.inf, dtype),
            jnp.zeros((sentences, count), jnp.int32),
            jnp.zeros((sentences, count), bool),
            missed=(),
        )

    initial = empty_hypotheses(beam)
    # One hypothesis to begin with, if the sentence is searched; the other rows are empty.
    state = _State(
        time=jnp.zeros((), jnp.int32),
        words=initial.words,
        log_probs=initial.log_probs,
        log_prob=initial.log_prob.at[:, 0].set(jnp.where(limits > 0, 0, -jnp.inf)),
        last=last,
        finished=empty_hypotheses(settings.nbest),
        missed=jnp.full(sentences, -jnp.inf, dtype),
        carry=carry,
        slots=slots,
    )
    state = jax.lax.while_loop(
        lambda state: (state.time < length) & (state.log_prob > -jnp.inf).any(),
        lambda state: _advance(state, step, limits, settings, boundary, rows),
        state,
    )
    # Empty rows hold hypotheses of probability 0.
    exists = state.finished.score > -jnp.inf

    def mask_empty(values, empty):
        return jnp.where(exists.reshape(exists.shape + (1,) * (values.ndim - 2)), values, empty)

    hypotheses = jax.tree.map(mask_empty, state.finished, empty_hypotheses(settings.nbest))
    return hypotheses._replace(missed=state.missed)


# ---- the largest numbers of long rows, such as of scores of all words

# Numbers of a block at least; where blocks would be smaller, rows are taken whole.
LEAST_BLOCK = 8


def top_k(array: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Returns the result of `jax.lax.top_k`, faster for long rows on CPUs: the largest numbers of a
    row are in its `count` blocks with the largest maxima."""
    rows, size = array.shape
    block = block_size(size, count)
    if block < LEAST_BLOCK:
        return _largest(_pad_columns(array, max(0, count - size)), count)
    blocked = _pad_columns(array, -size % block).reshape(rows, -1, block)
    _, blocks = _largest(blocked.max(axis=-1), count)
    blocks = jnp.sort(blocks, axis=-1)  # so that of equals the first still comes first
    candidates = blocked[jnp.arange(rows)[:, None], blocks].reshape(rows, count * block)
    numbers, columns = _largest(candidates, count)
    columns = jnp.take_along_axis(blocks, columns // block, axis=1) * block + columns % block
    return numbers, columns


def block_size(size: int, count: int) -> int:
    """Returns the greatest power of two with at least as many blocks as numbers of `count` blocks.

    So about as many maxima are compared as numbers of the blocks that are not skipped.
    """
    return 1 << (math.isqrt(max(1, size // count)).bit_length() - 1)


def _pad_columns(array, count):
    return jnp.pad(array, ((0, 0), (0, count)), constant_values=-jnp.inf)


def _largest(array, count):
    # Behind a barrier: where slices of these reach XLA's top-k on CPUs, it sorts the rows instead.
    numbers, columns = jax.lax.optimization_barrier(jax.lax.top_k(array, count))
    return numbers, columns.astype(jnp.int32)
