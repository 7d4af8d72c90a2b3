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
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Step = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


def as_tree(step: Step) -> jax.tree_util.Partial:
    """Wraps a step so that it can be an argument of compiled functions."""
    return step if isinstance(step, jax.tree_util.Partial) else jax.tree_util.Partial(step)


def check_boundary(boundary: int, log_probs: jax.Array):
    """Raises ValueError unless the boundary is one of the words of log-probabilities [..., V]."""
    if not 0 <= boundary < log_probs.shape[-1]:
        raise ValueError(
            f"boundary is {boundary}: give a word, from 0 to {log_probs.shape[-1] - 1:,}"
        )


@dataclasses.dataclass(frozen=True)
class _NextWord:
    """The step of a language model; equal for equal models, so that a decoder is compiled once for
    a model."""

    model: Any

    def __call__(self, params, tables, prepared, words, carry):
        return next_word(self.model, params, tables, prepared, words, carry)


def next_word(model, params, tables, prepared, words, carry):
    """Computes (log p of every next word, [B, V] nats; carry) by a `LanguageModel`."""
    states = model.states(params, tables, words[:, None], carry)
    hidden, context = jax.tree.map(lambda leaf: leaf[:, 0], states[:2])
    log_probs = model.head.log_probs(
        model.head_params(params), tables["head"], hidden, context=context, prepared=prepared
    )
    return log_probs, states[2]


def of_language_model(model, params, tables) -> jax.tree_util.Partial:
    """Returns step(words int32 [B], carry) -> (log_probs [B, V] in nats, carry) of a
    `LanguageModel`.
    """
    prepared = model.prepared(params, tables)
    return jax.tree_util.Partial(_NextWord(model), params, tables, prepared)


@dataclasses.dataclass(frozen=True)
class _NextTargetWord:
    """The step of an encoder-decoder; equal for equal models, so that a decoder is compiled once a
    shape."""

    model: Any

    def __call__(self, params, tables, prepared, encoded, words, carry):
        carry, sentences = carry
        of_rows = jax.tree.map(lambda leaf: leaf[sentences], encoded)
        arguments = params, tables, prepared, of_rows, words, carry
        log_probs, carry = next_target_word(self.model, *arguments)
        return log_probs, (carry, sentences)


def next_target_word(model, params, tables, prepared, encoded, words, carry):
    """Computes (log p of every next word, [rows, V] nats; carry) by a `SequenceToSequence`."""
    states = model.decoder.states(params, tables, words[:, None], carry)
    hidden = model.attended(params, states[0][:, 0], encoded)
    context = jax.tree.map(lambda leaf: leaf[:, 0], states[1])
    log_probs = model.head.log_probs(
        model.head_params(params), tables["head"], hidden, context=context, prepared=prepared
    )
    return log_probs, states[2]


def of_sequence_to_sequence(
    model, params, tables, source, lengths, prepared=None
) -> tuple[jax.tree_util.Partial, Any]:
    """Returns (step, carry) of a `SequenceToSequence` and a batch of B sources, for decoders.

    step(words int32 [rows], carry) -> (log_probs [rows, V] in nats, carry), of any rows. The arrays
    that are constant for a sentence (the encoder's hidden states and their mask, for attention) are
    arguments of the step with the leading dimension B, which a beam does not repeat or reorder, and
    the carry has the number of each row's sentence. The first word is the boundary. Decoded words
    have the order of the model: a "target_reversed" one generates them from the last to the first.
    """
    if prepared is None:
        prepared = model.prepared(params, tables)
    encoded = _compiled_encode(model)(params, tables, source, lengths)
    # The carry is the decoder's; arrays that do not change with the words belong to the step.
    constant = encoded._replace(carry=())
    step = jax.tree_util.Partial(_NextTargetWord(model), params, tables, prepared, constant)
    return step, (encoded.carry, jnp.arange(len(source), dtype=jnp.int32))


@functools.cache
def _compiled_encode(model):
    """Compiles `model.encode`, one program for all batches of a shape."""
    return jax.jit(model.encode)
