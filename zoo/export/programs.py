"""A language model as two compiled-anywhere programs of `jax.export`, for any number of rows.

    score(arrays, words [B, T], targets [B, T], reset [B, T], carry)
        -> (log p [B, T], log Z [B, T], carry)
    step(arrays, words [B], carry) -> (log p of every word [B, V], carry)

The arrays are a dict by name, "params/...", "tables/..." and "prepared/..."; the carry is a tuple.
So a program knows dicts, tuples and arrays, and whoever calls it needs no class of the zoo.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from zoo.decoding import steps
from zoo.evaluation.perplexity import PRECISION, score_step
from zoo.models import LanguageModel
from zoo.runs.exported import named_arrays

PLATFORMS = ("cpu", "cuda", "tpu")


class Programs(NamedTuple):
    """A model as data.

    programs: {"score" or "step": serialised program}. arrays: all that they take but the text, by
    name, on the host; "carry/0", "carry/1" ... [1, ...] are the carry of one row before any word.
    """

    programs: dict[str, bytearray]
    arrays: dict[str, np.ndarray]


def of_language_model(
    model: LanguageModel, params: Any, tables: Any, platforms: tuple[str, ...] = PLATFORMS
) -> Programs:
    """Exports the scoring function of a model, and its step if its head has all words' log p.

    Products are in full float32 on each platform, as in all figures of the zoo.

    Args:
      model: the model.
      params: its parameters.
      tables: `evaluation_tables` of its lexicon.
      platforms: those that the programs run on, as JAX calls them.
    """
    groups = {"params": params, "tables": tables, "prepared": model.prepared(params, tables)}
    structure = jax.tree.structure(groups)
    arrays = named_arrays(jax.tree.map(jnp.asarray, groups))
    row = jax.tree.leaves(model.initial_carry(1))
    carry = jax.tree.structure(model.initial_carry(1))
    rows, length = export.symbolic_shape("rows, length")

    def of_rows(leaf):
        return jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype)

    text, reset = (jax.ShapeDtypeStruct((rows, length), kind) for kind in (jnp.int32, bool))
    held, carried = _like(arrays), tuple(map(of_rows, row))
    given = {
        "score": (held, text, text, reset, carried),
        "step": (held, jax.ShapeDtypeStruct((rows,), jnp.int32), carried),
    }
    functions = {
        "score": functools.partial(_score, model, structure, [*arrays], carry),
        "step": functools.partial(_step, model, structure, [*arrays], carry),
    }
    if model.head.spells and not model.head.renormalised:
        del functions["step"]  # of infinitely many spellings
    with jax.default_matmul_precision(PRECISION), _without_folders():
        programs = {
            name: export.export(jax.jit(function), platforms=platforms)(*given[name]).serialize()
            for name, function in functions.items()
        }
    return Programs(programs, arrays | {f"carry/{i}": np.asarray(x) for i, x in enumerate(row)})


@contextlib.contextmanager
def _without_folders() -> Iterator[None]:
    """Programs name the source of each operation: within, by the names of files alone, and not by
    the folders of this machine."""
    option = "jax_hlo_source_file_canonicalization_regex"
    before = getattr(jax.config, option)
    jax.config.update(option, ".*/")
    try:
        yield
    finally:
        jax.config.update(option, before)


def _like(arrays):
    return {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in arrays.items()}


def _unflatten(structure, names, arrays):
    """(params, tables, prepared) of the arrays by name."""
    groups = jax.tree.unflatten(structure, [arrays[name] for name in names])
    return groups["params"], groups["tables"], groups["prepared"]


def _score(model, structure, names, carry_structure, arrays, words, targets, reset, carry):
    params, tables, prepared = _unflatten(structure, names, arrays)
    carry = jax.tree.unflatten(carry_structure, carry)
    (log_prob, log_z), carry = score_step(
        params, tables, prepared, words, targets, reset, carry, model=model
    )
    return log_prob, log_z, tuple(jax.tree.leaves(carry))


def _step(model, structure, names, carry_structure, arrays, words, carry):
    params, tables, prepared = _unflatten(structure, names, arrays)
    carry = jax.tree.unflatten(carry_structure, carry)
    log_probs, carry = steps.next_word(model, params, tables, prepared, words, carry)
    return log_probs, tuple(jax.tree.leaves(carry))
