"""Types of the contracts of components: trees of arrays, and random keys.

The arrays of a tree depend on the component: the docstring of the method that makes a tree lists
them.
"""

from typing import Any, TypeAlias

from jax import Array as Array

from zoo.base.arrays.random_keys import Keys

# Trained arrays of a component, {name: array or tree of arrays}; a core may have another tree.
Params: TypeAlias = dict[str, Any]
# Arrays that `tables(lexicon)` gives, handed to every method, never trained.
Tables: TypeAlias = dict[str, Any]
# Arrays that a head computes once for many calls, passed to them as `prepared`; None for none.
Prepared: TypeAlias = Any
# State that is passed from one call along a sequence to the next, every leaf [batch, ...].
Carry: TypeAlias = Any
# Prior knowledge at each position of a sequence, leaves [..., *]; None without such a prior.
Context: TypeAlias = Any
# A real number, which may be traced.
Real: TypeAlias = float | Array
# The shape of an array.
Shape: TypeAlias = tuple[int, ...]
# One random key, or the keys of a batch and its rows.
Key: TypeAlias = Array | Keys
