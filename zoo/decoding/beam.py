"""Beam search over a batch of sentences, compiled once a shape.

At each length the `beam` most probable unfinished hypotheses of a sentence are kept open. Those
that have ended are kept apart, as many as are wanted, and are never lost to open ones. One that
could end does so if this is among the `beam` most probable of all ways to go on.

Scores are log-probabilities, perhaps normalised by length. A hypothesis is at most as probable as
each of its beginnings, and no normaliser is larger than that of the greatest length n*:

    log p(w_1 ... w_n) / norm(n)  <=  log p(w_1 ... w_t) / norm(n*),    t <= n <= n*.

So an open hypothesis whose bound, the right side, is not above the last of the finished ones that
are wanted cannot win any more; the search stops when all are such. And where no bound of what was
let go for want of room is above the last one found, the search is known to have been exact.

By the same inequality, and so without any change to what is found, the step is called for those
open hypotheses alone that can still contribute one of the `beam` best longer ones, of sentences
that are not done; the products of the model are nearly all that a search costs.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.top_k import top_k
from zoo.decoding.steps import Step, as_tree
from zoo.errors import UserError

NORMALISERS = ("length", "gnmt")
# Of a call of the step at most: as many as make the products of a model cheap a row, and few enough
# that hypotheses which do not matter are left out.
ROWS = 64


class Hypotheses(NamedTuple):
    """The N hypotheses of each of B sentences, those of the highest score first.

    Attributes:
      words: int32 [B, N, longest], filled up with the boundary.
      log_probs: [B, N, longest], nats, of each token given those before; 0 after the last.
      log_prob: [B, N], nats, their sum; -inf where a sentence has no more hypotheses.
      score: [B, N], `log_prob` divided by the normaliser of the length.
      lengths: int32 [B, N], tokens, the boundary among them; 0 where there is no hypothesis.
      complete: bool [B, N], whether it ended by the boundary, and not at the greatest length.
      missed: [B], at least the score of every hypothesis that was lost for want of room in the
        beam. Where it is not above the last score, these are the best of all hypotheses.
    """

    words: jax.Array
    log_probs: jax.Array
    log_prob: jax.Array
    score: jax.Array
    lengths: jax.Array
    complete: jax.Array
    missed: jax.Array


def check_lengths(shortest: int, longest: int):
    """UserError for bounds of a hypothesis, in tokens, that are none."""
    if not 1 <= shortest <= longest:
        raise UserError(
            f"shortest {shortest} and longest {longest} are no bounds of a length in tokens: give "
            "1 <= shortest <= longest."
        )


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """Searches for the hypotheses w_1 ... w_n of the highest score,

        score = sum_j log p(w_j | w_<j) / norm(n),    norm(n) = n^alpha  or  ((5 + n) / 6)^alpha.

    w_n is the boundary, the only one, or n = longest. Lengths count tokens, the boundary among
    them. The second normaliser is that of Wu et al. (2016, equation 14).

    Attributes:
      beam: hypotheses that are kept open at each length.
      nbest: those that are wanted.
      length_normalisation: alpha, 0 or more; 0 ranks by log p alone, which favours short ones.
      normaliser: "length" or "gnmt", the first or the second of the two above.
      shortest: tokens of a hypothesis at least; 2 asks for a word before the boundary.
      longest: tokens at most. A hypothesis that reaches this without the boundary is kept, ranked
        with the others, and not `complete`.
      every_end: keeps the end of each open hypothesis, however improbable beside other ways to go
        on. More is found so, by a translator mostly translations that are too short; and a beam of
        1 is not greedy decoding, as it is otherwise without length normalisation.

    Raises:
      UserError: a number is out of range; nbest is above beam.

    Example:
      >>> search = decoding.BeamSearch(beam=3, nbest=2, longest=4)
      >>> found = search.search(step, first, carry, boundary=0)
      >>> found.words[0].tolist()
      [[1, 0, 0, 0], [2, 0, 0, 0]]
      >>> print(jnp.exp(found.log_prob[0]))
      [0.3  0.24]
    """

    beam: int = 12
    nbest: int = 1
    length_normalisation: float = 0.0
    normaliser: str = "length"
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
        if self.normaliser not in NORMALISERS:
            raise UserError(
                f"normaliser is {self.normaliser!r}: give {' or '.join(map(repr, NORMALISERS))}."
            )
        check_lengths(self.shortest, self.longest)

    def norm(self, lengths: jax.Array) -> jax.Array:
        """What log-probabilities of hypotheses of these lengths are divided by."""
        base = lengths if self.normaliser == "length" else (5 + lengths) / 6
        return base**self.length_normalisation

    def search(
        self,
        step: Step,
        words: jax.Array | np.ndarray,
        carry: Any,
        *,
        boundary: int,
        longest: jax.Array | np.ndarray | None = None,
    ) -> Hypotheses:
        """The best hypotheses of each sentence.

        Args:
          step: see `zoo.decoding.steps`; its log-probabilities are at most 0. It is given some open
            hypotheses at a time, in any order.
          words: int32 [B], the word before the first of each sentence.
          carry: the state before it, every leaf [B, ...].
          boundary: the word that ends a hypothesis.
          longest: int [B], the greatest length of each sentence, from `shortest` up to the field
            `longest`, which it is by default.

        Raises:
          ValueError: the carry, or what the step gives, has other shapes.
        """
        words = jnp.asarray(words, jnp.int32)
        limits = jnp.full(words.shape, self.longest) if longest is None else jnp.asarray(longest)
        limits = jnp.clip(limits, self.shortest, self.longest).astype(jnp.int32)
        for leaf in jax.tree.leaves(carry):
            if jnp.shape(leaf)[:1] != words.shape:
                raise ValueError(
                    f"a leaf of the carry has the shape {jnp.shape(leaf)}: the first axis of all "
                    f"is of the {len(words)} sentences"
                )
        return _search(as_tree(step), words, carry, limits, settings=self, boundary=boundary)


class _Kept(NamedTuple):
    """Hypotheses of each sentence, leaves [B, n, ...], as those of `Hypotheses`."""

    words: jax.Array
    log_probs: jax.Array
    log_prob: jax.Array
    score: jax.Array
    lengths: jax.Array
    complete: jax.Array

    def best(self, count: int) -> "_Kept":
        """The hypotheses of the highest scores, of equal ones the first."""
        _, chosen = jax.lax.top_k(self.score, count)
        return jax.tree.map(lambda leaf: _rows(leaf, chosen), self)


class _State(NamedTuple):
    """The state of a search after some tokens.

    Attributes:
      time: the number of tokens.
      words: of the open hypotheses, [B, K, longest].
      log_probs: of their words, [B, K, longest], nats.
      log_prob: of the open hypotheses, the most probable first, [B, K], nats; -inf for none.
      last: the last word of each open hypothesis, int32 [B, K].
      finished: the best hypotheses that have ended.
      missed: [B], see `Hypotheses`.
      carry: every leaf [slots, ...].
      slots: of each open hypothesis the slot of its carry, int32 [B, K].
    """

    time: jax.Array
    words: jax.Array
    log_probs: jax.Array
    log_prob: jax.Array
    last: jax.Array
    finished: _Kept
    missed: jax.Array
    carry: Any
    slots: jax.Array


class _Grown(NamedTuple):
    """What the step says of the open hypotheses that it was asked about.

    Attributes:
      asked: which these are, bool [B, K].
      longer: log p of the most probable hypotheses that are a word longer than each, none of them
        ended, [B, K, K + 1], nats.
      longer_log_probs: of their last words, [B, K, K + 1], nats.
      longer_words: their last words, int32 [B, K, K + 1].
      end_log_probs: of the boundary after each, [B, K], nats.
      enough: the (K + 1)-th of all `longer`, [B], nats.
      carry: after the last word of each, leaves [slots, ...].
      slots: of each the slot of its carry, int32 [B, K].
      filled: the number of slots in use.
    """

    asked: jax.Array
    longer: jax.Array
    longer_log_probs: jax.Array
    longer_words: jax.Array
    end_log_probs: jax.Array
    enough: jax.Array
    carry: Any
    slots: jax.Array
    filled: jax.Array


def _rows(leaf, chosen):
    """leaf [B, n, ...], chosen [B, m] -> [B, m, ...]."""
    return leaf[jnp.arange(len(leaf))[:, None], chosen]


def _grown(state, step, settings, boundary, rows):
    """The hypotheses one word longer that matter, of the step called with `rows` rows at a time.

    No hypothesis is more probable than what it continues. So those are asked first that are the
    most probable of their sentences; and once K + 1 longer ones are more probable than all
    hypotheses that were not asked, these are not asked any more, nor are those of sentences that
    are done. With `every_end` all open ones are.
    """
    sentences, beam = state.log_prob.shape
    wanted = beam + 1

    def missing(grown):
        matter = (state.log_prob > -jnp.inf) & ~grown.asked
        return matter & (state.log_prob >= grown.enough[:, None])

    def ask(grown):
        # The first hypothesis of each sentence, then the second; rows without any come last.
        (chosen,) = jnp.nonzero(missing(grown).T.ravel(), size=rows, fill_value=sentences * beam)
        chosen = chosen.astype(jnp.int32)
        at = chosen % sentences, chosen // sentences
        log_prob, last, slots = (
            array.at[at].get(mode="clip") for array in (state.log_prob, state.last, state.slots)
        )
        log_probs, carry = step(last, jax.tree.map(lambda leaf: leaf[slots], state.carry))
        log_probs = log_probs.astype(log_prob.dtype)
        is_boundary = jnp.arange(log_probs.shape[1])[None] == boundary
        best, words = top_k(jnp.where(is_boundary, -jnp.inf, log_probs), wanted)
        words = jnp.minimum(words, log_probs.shape[1] - 1)  # where there are fewer

        def put(array, values):
            return array.at[at].set(values, mode="drop")

        longer = put(grown.longer, log_prob[:, None] + best)
        enough = grown.enough
        if not settings.every_end:
            enough = jax.lax.top_k(longer.reshape(sentences, -1), wanted)[0][:, -1]
        return _Grown(
            put(grown.asked, True),
            longer,
            put(grown.longer_log_probs, best),
            put(grown.longer_words, words),
            put(grown.end_log_probs, log_probs[:, boundary]),
            enough,
            jax.tree.map(
                lambda slots, leaf: jax.lax.dynamic_update_slice_in_dim(
                    slots, leaf, grown.filled, axis=0
                ),
                grown.carry,
                carry,
            ),
            put(grown.slots, grown.filled + jnp.arange(rows, dtype=jnp.int32)),
            grown.filled + rows,
        )

    none = jnp.full((sentences, beam, wanted), -jnp.inf, state.log_prob.dtype)
    nothing = _Grown(
        jnp.zeros(state.log_prob.shape, bool),
        none,
        none,
        jnp.zeros(none.shape, jnp.int32),
        none[..., 0],
        none[:, 0, 0],
        jax.tree.map(jnp.zeros_like, state.carry),
        jnp.zeros(state.slots.shape, jnp.int32),
        jnp.zeros((), jnp.int32),
    )
    return jax.lax.while_loop(lambda grown: missing(grown).any(), ask, nothing)


def _competing(ended, best):
    """Which of the ends [B, K] are among the K most probable of all ways to go on, of equals the
    ends; best [B, K]: the most probable others."""
    ranks = jnp.arange(ended.shape[1])
    one, other = ended[:, :, None], ended[:, None, :]
    before = (other == one) & (ranks[None, None, :] < ranks[None, :, None])
    ahead = ((other > one) | before).sum(axis=-1) + (best[:, None, :] > one).sum(axis=-1)
    return ahead < ended.shape[1]


def _longer(state, step, limits, settings, boundary, rows):
    """The state after a token more."""
    sentences, beam = state.log_prob.shape
    grown = _grown(state, step, settings, boundary, rows)
    length = state.time + 1

    def kept(words, log_probs, log_prob, complete):
        return _Kept(
            words,
            log_probs,
            log_prob,
            log_prob / settings.norm(length),
            jnp.full(log_prob.shape, length),
            jnp.full(log_prob.shape, complete),
        )

    # One more than there is room for: the best of those that are let go.
    best, chosen = top_k(grown.longer.reshape(sentences, -1), beam + 1)
    bound = best / settings.norm(limits)[:, None]
    missed = jnp.maximum(state.missed, bound[:, -1])
    best, bound, chosen = (array[:, :beam] for array in (best, bound, chosen))
    parents, last, last_log_probs = (
        jnp.take_along_axis(array.reshape(sentences, -1), chosen, axis=1)
        for array in (_numbers(grown.longer), grown.longer_words, grown.longer_log_probs)
    )
    ends = jnp.where(length >= settings.shortest, state.log_prob + grown.end_log_probs, -jnp.inf)
    if not settings.every_end:
        competing = _competing(ends, best)
        lost = jnp.where(competing, -jnp.inf, ends).max(axis=1) / settings.norm(length)
        missed = jnp.maximum(missed, lost)
        ends = jnp.where(competing, ends, -jnp.inf)
    ended = kept(
        state.words,  # filled up with the boundary
        state.log_probs.at[:, :, state.time].set(grown.end_log_probs),
        ends,
        True,
    )
    words = _rows(state.words, parents).at[:, :, state.time].set(last)
    log_probs = _rows(state.log_probs, parents).at[:, :, state.time].set(last_log_probs)
    full = (length >= limits)[:, None]
    cut = kept(words, log_probs, jnp.where(full, best, -jnp.inf), False)
    finished = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves, axis=1), state.finished, ended, cut
    ).best(settings.nbest)
    hopeless = bound <= finished.score[:, -1:]
    return _State(
        length,
        words,
        log_probs,
        jnp.where(full | hopeless, -jnp.inf, best),
        last,
        finished,
        missed,
        grown.carry,
        _rows(grown.slots, parents),
    )


def _numbers(longer):
    """The hypothesis k that each of [B, K, n] continues, int32 of the same shape."""
    return jax.lax.broadcasted_iota(jnp.int32, longer.shape, 1)


@functools.partial(jax.jit, static_argnames=("settings", "boundary"))
def _search(step, words, carry, limits, *, settings, boundary):
    sentences, beam, length = len(words), settings.beam, settings.longest
    rows = min(sentences * beam, ROWS)
    last = jnp.repeat(words[:, None], beam, axis=1)
    slots = jnp.repeat(jnp.arange(sentences, dtype=jnp.int32)[:, None], beam, axis=1)
    # Of whole calls of the step.
    spare = -(-sentences * beam // rows) * rows - sentences
    carry = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, spare),) + ((0, 0),) * (leaf.ndim - 1)), carry
    )
    shape, _ = jax.eval_shape(step, last.ravel()[:rows], jax.tree.map(lambda a: a[:rows], carry))
    if len(shape.shape) != 2 or len(shape) != rows:
        raise ValueError(
            f"the step gives log_probs of the shape {shape.shape} for {rows} rows: they have the "
            "shape [rows, V]"
        )
    dtype = jnp.promote_types(shape.dtype, jnp.float32)

    def none(count):
        return _Kept(
            jnp.full((sentences, count, length), boundary, jnp.int32),
            jnp.zeros((sentences, count, length), dtype),
            jnp.full((sentences, count), -jnp.inf, dtype),
            jnp.full((sentences, count), -jnp.inf, dtype),
            jnp.zeros((sentences, count), jnp.int32),
            jnp.zeros((sentences, count), bool),
        )

    start = none(beam)
    # One hypothesis to begin with; the other rows of the beam are empty.
    state = _State(
        jnp.zeros((), jnp.int32),
        start.words,
        start.log_probs,
        start.log_prob.at[:, 0].set(0),
        last,
        none(settings.nbest),
        jnp.full(sentences, -jnp.inf, dtype),
        carry,
        slots,
    )
    state = jax.lax.while_loop(
        lambda state: (state.time < length) & (state.log_prob > -jnp.inf).any(),
        lambda state: _longer(state, step, limits, settings, boundary, rows),
        state,
    )
    # Empty rows hold what was of no probability.
    exists = state.finished.score > -jnp.inf

    def emptied(values, empty):
        return jnp.where(exists.reshape(exists.shape + (1,) * (values.ndim - 2)), values, empty)

    hypotheses = jax.tree.map(emptied, state.finished, none(settings.nbest))
    return Hypotheses(**hypotheses._asdict(), missed=state.missed)
