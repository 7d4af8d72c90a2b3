"""A model as programs of `jax.export` that are compiled anywhere, for any number of rows.

A language model:

    score(arrays, words [B, T], targets [B, T], reset [B, T], carry)
        -> (log p [B, T], log Z [B, T], carry)
    step(arrays, words [B], carry) -> (log p of every word [B, V], carry)

An encoder-decoder:

    score(arrays, source [B, S], lengths [B], words [B, T], targets [B, T])
        -> (log p [B, T], log Z [B, T])
    encode(arrays, source [B, S], lengths [B]) -> (carry, constant)
    step(arrays, words [B], carry, constant) -> (log p of every word [B, V], carry)

The arrays are a dict by name, "params/...", "tables/..." and "prepared/..."; the carry is a tuple.
So a program takes dicts, tuples and arrays, and its callers need no class of Zoo.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from zoo.decoding import steps
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.runs.exported_run import named_arrays
from zoo.models import LanguageModel, SequenceToSequence

PLATFORMS = ("cpu", "cuda", "tpu")


class Programs(NamedTuple):
    """A model as data."""

    programs: dict[str, bytearray]
    # all arguments but the text, by name, on the host; "carry/0", "carry/1" ... [1, ...] are the
    # carry of one row of a language model before any word
    arrays: dict[str, np.ndarray]


def of_language_model(
    model: LanguageModel, params: Any, tables: Any, platforms: tuple[str, ...] = PLATFORMS
) -> Programs:
    """Exports the scoring function of a model, and its step if its head has all words' log p."""
    groups, arrays = _arrays(model, params, tables)
    row = jax.tree.leaves(model.initial_carry(1))
    of_carry = functools.partial(jax.tree.unflatten, jax.tree.structure(model.initial_carry(1)))

    def score(arrays, words, targets, reset, carry):
        params, tables, prepared = groups(arrays)
        (log_prob, log_z), carry = model.log_prob_and_log_z(
            params, tables, words, targets, of_carry(carry), reset=reset, prepared=prepared
        )
        return log_prob, log_z, tuple(jax.tree.leaves(carry))

    def step(arrays, words, carry):
        params, tables, prepared = groups(arrays)
        log_probs, carry = steps.next_word(model, params, tables, prepared, words, of_carry(carry))
        return log_probs, tuple(jax.tree.leaves(carry))

    rows, length = export.symbolic_shape("rows, length")
    text, reset = (jax.ShapeDtypeStruct((rows, length), kind) for kind in (jnp.int32, bool))
    held = _like(arrays)
    carried = tuple(jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype) for leaf in row)
    functions: dict[Callable, tuple] = {score: (held, text, text, reset, carried)}
    if not _has_no_list_of_words(model.head):
        functions[step] = (held, jax.ShapeDtypeStruct((rows,), jnp.int32), carried)
    programs = _serialised(functions, platforms)
    return Programs(programs, arrays | {f"carry/{i}": np.asarray(x) for i, x in enumerate(row)})


def of_sequence_to_sequence(
    model: SequenceToSequence, params: Any, tables: Any, platforms: tuple[str, ...] = PLATFORMS
) -> Programs:
    """Exports an encoder-decoder's scoring function and, if its head has all words' log p, its
    encoder and the decoder's step."""
    groups, arrays = _arrays(model, params, tables)
    rows, source, length = export.symbolic_shape("rows, source, length")
    held, numbers = _like(arrays), jax.ShapeDtypeStruct((rows,), jnp.int32)
    sources, targets = (jax.ShapeDtypeStruct((rows, n), jnp.int32) for n in (source, length))
    encoded = jax.eval_shape(model.encode, params, tables, sources, numbers)
    constant = encoded._replace(carry=())
    leaves = tuple(jax.tree.leaves(encoded.carry)), tuple(jax.tree.leaves(constant))
    structures = jax.tree.structure(encoded.carry), jax.tree.structure(constant)

    def score(arrays, source, lengths, words, targets):
        params, tables, prepared = groups(arrays)
        return model.log_prob_and_log_z(
            params, tables, source, lengths, words, targets, prepared=prepared
        )

    def encode(arrays, source, lengths):
        params, tables, _ = groups(arrays)
        encoded = model.encode(params, tables, source, lengths)
        constant = encoded._replace(carry=())
        return tuple(jax.tree.leaves(encoded.carry)), tuple(jax.tree.leaves(constant))

    def step(arrays, words, carry, constant):
        params, tables, prepared = groups(arrays)
        carry, encoded = map(jax.tree.unflatten, structures, (carry, constant))
        log_probs, carry = steps.next_word(model, params, tables, prepared, words, carry, encoded)
        return log_probs, tuple(jax.tree.leaves(carry))

    functions: dict[Callable, tuple] = {score: (held, sources, numbers, targets, targets)}
    if not _has_no_list_of_words(model.head):
        functions |= {encode: (held, sources, numbers), step: (held, numbers, *leaves)}
    return Programs(_serialised(functions, platforms), arrays)


def _arrays(model, params, tables):
    """Returns (the function from arrays to (params, tables, prepared), the arrays by name)."""
    groups = {"params": params, "tables": tables, "prepared": model.prepared(params, tables)}
    structure, made = jax.tree.structure(groups), named_arrays(jax.tree.map(jnp.asarray, groups))

    def of(arrays):
        groups = jax.tree.unflatten(structure, [arrays[name] for name in made])
        return groups["params"], groups["tables"], groups["prepared"]

    return of, made


def _has_no_list_of_words(head) -> bool:
    """Whether there are infinitely many spellings of which a step would have to give log p."""
    return head.spells and not head.renormalised


def _serialised(functions, platforms) -> dict[str, bytearray]:
    """Exports functions for arguments of these shapes and serialises the programs, by name."""
    with jax.default_matmul_precision(PRECISION), _without_folders():
        return {
            one.__name__: export.export(jax.jit(one), platforms=platforms)(*given).serialize()
            for one, given in functions.items()
        }


@contextlib.contextmanager
def _without_folders() -> Iterator[None]:
    """Keeps this machine's folders out of programs, which then name sources by file alone."""
    option = "jax_hlo_source_file_canonicalization_regex"
    before = getattr(jax.config, option)
    jax.config.update(option, ".*/")
    try:
        yield
    finally:
        jax.config.update(option, before)


def _like(arrays):
    return {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in arrays.items()}
