"""Step functions, the interface between decoders and models.

A step function returns the distribution of the next word, and is all that a decoder calls of a
model:

    step(words int32 [rows], carry) -> (log_probs [rows, V] in nats, carry)

Every leaf of the carry is [rows, ...]. Decoders repeat, reorder and drop its rows, so that a step
gets any number of rows in any order. Arrays that are constant for a sentence, such as the states
that attention reads, need not be carried: let the step hold arrays [B, ...], and the carry the
number of each row's sentence.

Pass it as `jax.tree_util.Partial(function, params, tables)`: the arrays are then arguments of the
compiled loop. The arrays of a plain closure become constants of the program.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.errors import UserError
from zoo.lexicon import Lexicon

Step = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


def as_tree(step: Step) -> jax.tree_util.Partial:
    return step if isinstance(step, jax.tree_util.Partial) else jax.tree_util.Partial(step)


def check_boundary(boundary: int, log_probs: jax.Array):
    """Raises ValueError unless the boundary is one of the words of log-probabilities [..., V]."""
    if not 0 <= boundary < log_probs.shape[-1]:
        raise ValueError(
            f"boundary is {boundary}: give a word, from 0 to {log_probs.shape[-1] - 1:,}"
        )


@dataclasses.dataclass(frozen=True)
class Bound:
    """A function bound to its first argument; equality lets jax.jit compile a decoder once."""

    function: Callable[..., Any]
    argument: Any

    def __call__(self, *arguments):
        return self.function(self.argument, *arguments)


def next_word(model, params, tables, prepared, words, carry, encoded=None):
    """Computes (log p of every next word, [rows, V] nats; carry).

    An encoder-decoder needs the encoded source of each row.
    """
    words = words[:, None]
    if encoded is None:
        hidden, context, carry = model.states(params, tables, words, carry)
    else:
        _, hidden, context, carry = model.advance(params, tables, encoded, words, carry)
    hidden, context = jax.tree.map(lambda leaf: leaf[:, 0], (hidden, context))
    log_probs = model.head.log_probs(
        model.head_params(params), tables["head"], hidden, context=context, prepared=prepared
    )
    return log_probs, carry


def from_language_model(model, params, tables) -> jax.tree_util.Partial:
    """Returns the step of a `LanguageModel`."""
    prepared = model.prepared(params, tables)
    return jax.tree_util.Partial(Bound(next_word, model), params, tables, prepared)


def _next_target_word(model, params, tables, prepared, encoded, words, carry):
    carry, sentences = carry
    encoded_rows = jax.tree.map(lambda leaf: leaf[sentences], encoded)
    log_probs, carry = next_word(model, params, tables, prepared, words, carry, encoded_rows)
    return log_probs, (carry, sentences)


def from_sequence_to_sequence(
    model, params, tables, source, lengths, prepared=None
) -> tuple[jax.tree_util.Partial, Any]:
    """Returns (step, carry) of a `SequenceToSequence` and a batch of B sources.

    The first word is the boundary. Decoded words have the order of the model: a "target_reversed"
    one generates them from the last to the first.
    """
    if prepared is None:
        prepared = model.prepared(params, tables)
    encoded = _compiled_encode(model)(params, tables, source, lengths)
    # The carry is the decoder's; arrays that do not change with the words belong to the step.
    function = Bound(_next_target_word, model)
    step = jax.tree_util.Partial(function, params, tables, prepared, encoded._replace(carry=()))
    return step, (encoded.carry, jnp.arange(len(source), dtype=jnp.int32))


@functools.cache
def _compiled_encode(model):
    return jax.jit(model.encode)


# ---- steps combined from several steps: ensembles, and shallow fusion with a language model
# Each is a step function again, for all decoders. Its carry is the tuple of its members' carries.
# Members may be any models, with heads of any kind, over the same words in the same order.

AVERAGES = ("probabilities", "logs")


def _call_members(steps, words, carries):
    """Calls each step of an ensemble; returns (log-probabilities, carries) of all steps."""
    outputs = [step(words, carry) for step, carry in zip(steps, carries, strict=True)]
    sizes = {log_probs.shape[-1] for log_probs, _ in outputs}
    if len(sizes) > 1:
        raise ValueError(
            f"the steps of an ensemble have {sorted(sizes)} words: give steps over the same words"
        )
    return [log_probs for log_probs, _ in outputs], tuple(carry for _, carry in outputs)


def _average(quantity, steps, weights, words, carries):
    log_probs, carries = _call_members(steps, words, carries)
    stacked = jnp.stack(log_probs)
    weights = weights.astype(stacked.dtype)[:, None, None]
    if quantity == "probabilities":
        return jax.nn.logsumexp(stacked, axis=0, b=weights), carries
    # A word of probability 0 by one member has 0 by all; a member of weight 0 is left out.
    weighted = jnp.where(weights > 0, weights * stacked, 0).sum(axis=0)
    return jax.nn.log_softmax(weighted), carries


def average(
    steps: Sequence[Step], weights: Sequence[float] | None = None, quantity: str = "probabilities"
) -> jax.tree_util.Partial:
    """Returns the step of an ensemble, with weights a_i that add up to 1:

        p(w) = sum_i a_i p_i(w)  of "probabilities",   p(w) = prod_i p_i(w)^a_i / Z  of "logs".

    Args:
      steps: the members' steps.
      weights: one for each step, 0 or more, of any sum above 0; None for equal weights.
      quantity: "probabilities" or "logs", of which the mean is taken.

    Raises:
      UserError: `steps` is empty, the weights do not fit, or `quantity` is neither of the two.

    Example:
      >>> uniform = jax.tree_util.Partial(follow, jnp.full((3, 3), -jnp.log(3)))
      >>> ensemble = decoding.average((step, uniform), weights=(3, 1))
      >>> log_p, carries = ensemble(first, (carry, carry))
      >>> print(jnp.exp(log_p))  # 3/4 (0.1, 0.6, 0.3) + 1/4 (1/3, 1/3, 1/3)
      [[0.1583 0.5333 0.3083]]
    """
    if quantity not in AVERAGES:
        raise UserError(
            f"an ensemble cannot average {quantity!r}: give {' or '.join(map(repr, AVERAGES))}."
        )
    if not steps:
        raise UserError("an ensemble has no steps: give at least one.")
    shares = np.ones(len(steps)) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (len(steps),) or not ((shares >= 0).all() and 0 < shares.sum() < np.inf):
        raise UserError(
            f"the weights of an ensemble of {len(steps)} are {weights}: give as many numbers, none "
            "below 0, and one above it."
        )
    normalised = jnp.asarray(shares / shares.sum())
    return jax.tree_util.Partial(Bound(_average, quantity), tuple(map(as_tree, steps)), normalised)


def _fuse(renormalised, steps, weight, words, carries):
    (log_probs, language_model), carries = _call_members(steps, words, carries)
    scores = log_probs + jnp.where(weight > 0, weight.astype(log_probs.dtype) * language_model, 0)
    return jax.nn.log_softmax(scores) if renormalised else scores, carries


def fuse(
    step: Step, language_model: Step, weight: float, renormalised: bool = False
) -> jax.tree_util.Partial:
    """Returns the step of a translator fused with a language model, shallow fusion (Gulcehre et al.
    2015, section 4.1):

        score(w) = log p(w) + weight * log p_lm(w).

    Its carry is (the translator's, the language model's). As usual the scores are not normalised: a
    beam search adds them up, and every word costs more than without the language model.

    Args:
      step: the translator's.
      language_model: the language model's step.
      weight: 0 or more.
      renormalised: whether to normalise the scores at each word, as sampling does anyway.

    Raises:
      UserError: the weight is below 0 or not finite.

    Example:
      >>> fused = decoding.fuse(step, step, weight=0.5)
      >>> scores, carries = fused(first, (carry, carry))
      >>> print(jnp.exp(scores))  # each p times its square root
      [[0.0316 0.4648 0.1643]]
    """
    check_weight(weight)
    steps = as_tree(step), as_tree(language_model)
    fused = Bound(_fuse, renormalised)
    return jax.tree_util.Partial(fused, steps, jnp.asarray(weight, jnp.float32))


def check_weight(weight: float):
    if not 0 <= weight < np.inf:
        raise UserError(f"the language model's weight is {weight}: give 0 or a number above it.")


def check_same_words(lexicons: Sequence[Lexicon], names: Sequence[Any]):
    """Raises UserError unless the lexicons have the same words in the same order, and marks."""
    reference = lexicons[0]
    for lexicon, name in zip(lexicons[1:], names[1:], strict=True):
        if lexicon.words != reference.words:
            reason = f"{name} and {names[0]} have different words"
        elif (lexicon.boundary, lexicon.unknown) != (reference.boundary, reference.unknown):
            reason = f"{name} and {names[0]} have different boundary or unknown words"
        else:
            continue
        raise UserError(f"{reason}: combine runs that were trained with one lexicon.")


# ---------- states of a step function for a user's decoder: kept, forked and batched
# Rows are held in arrays of 1, 2, 4, 8 ... slots, so that a decoder whose beam grows and shrinks
# needs a compiled program for each of a few sizes, and not for each number of rows.


@jax.jit
def _take_rows(carry, rows):
    return jax.tree.map(lambda leaf: leaf[rows], carry)


@jax.jit
def _call_step(step, words, carry):
    return step(words, carry)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class States:
    """The states of some rows, each the state after a prefix. They are immutable.

    `states[2]`, `states[[0, 0, 1]]` and `states[1:]` are new states of these rows: so they are
    selected, reordered and forked. `len(states)` is the number of rows.
    """

    carry: Any  # every leaf [slots, ...], of at least `size` slots
    size: int = dataclasses.field(metadata={"static": True})

    def __repr__(self):
        return f"States({self.size:,} rows)"

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows) -> "States":
        """Selects the rows at these numbers: an int, a slice, or a sequence of ints."""
        index = rows if isinstance(rows, int | slice | np.integer) else np.asarray(rows)
        row_numbers = np.atleast_1d(np.arange(self.size)[index])
        if row_numbers.ndim != 1 or not len(row_numbers):
            raise IndexError(f"{rows!r} chooses no rows of {self.size} states: give some of them")
        return States(_take_rows(self.carry, _pad_rows(row_numbers)), len(row_numbers))

    @classmethod
    def from_carry(cls, carry: Any) -> "States":
        """Returns the states of the rows of a carry, every leaf [rows, ...]."""
        rows = len(jax.tree.leaves(carry)[0])
        return cls(_take_rows(carry, _pad_rows(np.arange(rows))), rows)

    @classmethod
    def batched(cls, states: Sequence["States"]) -> "States":
        """Concatenates the rows of several states."""
        if not states:
            raise ValueError("the list of states to batch is empty: give at least one")
        if len(states) == 1:
            return states[0]
        carries = [state.carry for state in states]
        slots = [len(jax.tree.leaves(carry)[0]) for carry in carries]
        # Padded to a power of two with copies of the last, so that few shapes are compiled.
        carries += carries[-1:] * (_count_slots(len(states)) - len(states))
        concatenated = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *carries)
        starts = np.cumsum([0, *slots[:-1]]).tolist()
        rows = [start + np.arange(state.size) for start, state in zip(starts, states, strict=True)]
        row_numbers = np.concatenate(rows)
        return cls(_take_rows(concatenated, _pad_rows(row_numbers)), len(row_numbers))

    def advance(self, step: jax.tree_util.Partial, words: np.ndarray) -> tuple[Any, "States"]:
        """Reads a word in each row."""
        padded_words = np.zeros(len(jax.tree.leaves(self.carry)[0]), np.int32)
        padded_words[: self.size] = words
        log_probs, carry = _call_step(step, padded_words, self.carry)
        return log_probs[: self.size], States(carry, self.size)


def _count_slots(rows):
    return 1 << (rows - 1).bit_length()


def _pad_rows(rows):
    """Pads row numbers to a power of two of slots with copies of the last."""
    return np.append(rows, np.repeat(rows[-1:], _count_slots(len(rows)) - len(rows)))
