"""Names for what components hand to each other: trees of arrays, each by its part in the contracts.

They are what a signature can say without knowing the component: which arrays a tree holds is told
by the docstring of the method that makes it.
"""

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from zoo.arrays.keys import Keys

# Trained arrays of a component, {name: array or tree of arrays}; a core may have another tree.
Params: TypeAlias = dict[str, Any]
# Arrays that `tables(lexicon)` gives, handed to every method, never trained.
Tables: TypeAlias = dict[str, Any]
# What a head computes once for many calls, handed to them as `prepared`; None for nothing.
Prepared: TypeAlias = Any
# What goes from one call along a sequence to the next, every leaf [batch, ...].
Carry: TypeAlias = Any
# What a prior knows at each position of a sequence, leaves [..., *]; None without such a prior.
Context: TypeAlias = Any
# One random key, or the keys of a batch and its rows.
Key: TypeAlias = jax.Array | Keys


def accumulator(array):
    """The type in which long sums are kept: bfloat16 stands still after some hundred additions."""
    return jnp.promote_types(array.dtype, jnp.float32)
