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

from zoo.base.arrays import sharded_functions
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


def export_language_model(
    model: LanguageModel, params: Any, tables: Any, platforms: tuple[str, ...] = PLATFORMS
) -> Programs:
    """Exports the scoring function of a model, and its step if its head has all words' log p."""
    groups, arrays = _arrays(model, params, tables)
    row = jax.tree.leaves(model.initial_carry(1))
    unflatten = functools.partial(jax.tree.unflatten, jax.tree.structure(model.initial_carry(1)))

    def score(arrays, words, targets, reset, carry):
        params, tables, prepared = groups(arrays)
        (log_prob, log_z), carry = model.log_prob_and_log_z(
            params, tables, words, targets, unflatten(carry), reset=reset, prepared=prepared
        )
        return log_prob, log_z, tuple(jax.tree.leaves(carry))

    def step(arrays, words, carry):
        params, tables, prepared = groups(arrays)
        log_probs, carry = steps.next_word(model, params, tables, prepared, words, unflatten(carry))
        return log_probs, tuple(jax.tree.leaves(carry))

    rows, length = export.symbolic_shape("rows, length")
    text, reset = (jax.ShapeDtypeStruct((rows, length), kind) for kind in (jnp.int32, bool))
    shapes = _array_shapes(arrays)
    carry_shapes = tuple(jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype) for leaf in row)
    functions: dict[Callable, tuple] = {score: (shapes, text, text, reset, carry_shapes)}
    if not _has_no_list_of_words(model.head):
        functions[step] = (shapes, jax.ShapeDtypeStruct((rows,), jnp.int32), carry_shapes)
    programs = _serialise(functions, platforms)
    return Programs(programs, arrays | {f"carry/{i}": np.asarray(x) for i, x in enumerate(row)})


def export_sequence_to_sequence(
    model: SequenceToSequence, params: Any, tables: Any, platforms: tuple[str, ...] = PLATFORMS
) -> Programs:
    """Exports an encoder-decoder's scoring function, its encoder and the decoder's step.

    Encoder and step are left out unless the head has all words' log p.
    """
    groups, arrays = _arrays(model, params, tables)
    rows, source, length = export.symbolic_shape("rows, source, length")
    shapes, numbers = _array_shapes(arrays), jax.ShapeDtypeStruct((rows,), jnp.int32)
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

    functions: dict[Callable, tuple] = {score: (shapes, sources, numbers, targets, targets)}
    if not _has_no_list_of_words(model.head):
        functions |= {encode: (shapes, sources, numbers), step: (shapes, numbers, *leaves)}
    return Programs(_serialise(functions, platforms), arrays)


def _arrays(model, params, tables):
    """Returns (the function from arrays to (params, tables, prepared), the arrays by name)."""
    groups = {"params": params, "tables": tables, "prepared": model.prepared(params, tables)}
    structure, leaves = jax.tree.structure(groups), named_arrays(jax.tree.map(jnp.asarray, groups))

    def split(arrays):
        groups = jax.tree.unflatten(structure, [arrays[name] for name in leaves])
        return groups["params"], groups["tables"], groups["prepared"]

    return split, leaves


def _has_no_list_of_words(head) -> bool:
    """Whether there are infinitely many spellings of which a step would have to give log p."""
    return head.spells and not head.renormalised


def _serialise(functions, platforms) -> dict[str, bytearray]:
    """Exports functions for arguments of the given shapes; returns {name: serialised program}."""
    any_platform = sharded_functions.for_any_platform()
    with jax.default_matmul_precision(PRECISION), _without_folders(), any_platform:
        return {
            f.__name__: export.export(jax.jit(f), platforms=platforms)(*shapes).serialize()
            for f, shapes in functions.items()
        }


@contextlib.contextmanager
def _without_folders() -> Iterator[None]:
    """Keeps this machine's folders out of programs, which then name sources by file alone."""
    option = "jax_hlo_source_file_canonicalization_regex"
    previous = getattr(jax.config, option)
    jax.config.update(option, ".*/")
    try:
        yield
    finally:
        jax.config.update(option, previous)


def _array_shapes(arrays):
    """Returns the shapes and dtypes of arrays by name."""
    return {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in arrays.items()}
