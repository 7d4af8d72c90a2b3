"""Checks of the values of public functions' arguments, beside their shapes.

Only arrays whose values are known are checked: in compiled code, arrays have no values yet. A
`remedy` is the end of an error's message: the values to give instead.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from zoo.base.arrays.types import Array, Shape

# How far from 1 a sum of probabilities may be by rounding: for types of 32 bits or more, and fewer.
ROUNDING, COARSE_ROUNDING = 1e-4, 0.05


def concrete_values(array: Any) -> np.ndarray | None:
    """Returns the values of an array, or None if this process does not have them: if the array is
    traced, computed when it is looked up, or shared with other processes."""
    if isinstance(array, jax.core.Tracer):
        return None
    if isinstance(array, jax.Array):
        return np.asarray(array) if array.is_fully_addressable else None
    values = np.asarray(array)
    return None if values.dtype == object else values


def refuse(name: str, array: ArrayLike, is_wrong: np.ndarray, remedy: str):
    """Raises ValueError with the first wrong number of an array, if any is wrong."""
    if is_wrong.any():
        position = np.unravel_index(int(is_wrong.argmax()), is_wrong.shape)
        raise ValueError(f"{name} has {np.asarray(array)[position]}{_at(position)}: give {remedy}")


def _at(position):
    """Formats the position of a wrong number for a message: " at [3, 0]"; "" for a scalar."""
    return f" at {[*map(int, position)]}" if position else ""


def check_ids(count: int, token_weights: ArrayLike | None = None, **ids: ArrayLike):
    """Raises ValueError for ids outside [0, count), except those of tokens of weight 0; checks
    nothing if the weights are traced."""
    weights = None if token_weights is None else concrete_values(token_weights)
    for name, array in ids.items():
        numbers = concrete_values(array)
        if numbers is None or (weights is None and token_weights is not None):
            continue
        wrong = (numbers < 0) | (numbers >= count)
        wrong &= True if weights is None else weights != 0
        refuse(name, numbers, wrong, f"ids from 0 to {count - 1:,}")


def nan_where_invalid(losses, count: int, ids, token_weights=None) -> Array:
    """Replaces the losses of ids outside [0, count) by NaN.

    With token_weights, `losses` is their weighted sum, which becomes NaN if such an id has a weight
    other than 0. In compiled code, where ids have no values yet, their losses
    would belong to other ids.
    """
    unknown = ids < 0
    if count <= jnp.iinfo(ids.dtype).max:
        unknown |= ids >= count
    if token_weights is None:
        return jnp.where(unknown, jnp.nan, losses)
    return losses + jnp.where(unknown & (token_weights != 0), jnp.nan, 0).sum().astype(losses.dtype)


def check_least(minimum: float, remedy: str, **arguments: ArrayLike):
    """Raises ValueError unless all numbers are finite and at least `minimum`."""
    for name, array in arguments.items():
        numbers = concrete_values(array)
        if numbers is not None:
            refuse(name, numbers, ~((numbers >= minimum) & (numbers < np.inf)), remedy)


def check_share(**arguments: float):
    """Raises TypeError unless arguments are Python's or numpy's numbers, ValueError unless they are
    at least 0 and less than 1."""
    for name, number in arguments.items():
        if isinstance(number, bool) or not isinstance(number, int | float | np.floating):
            raise TypeError(f"{name} is {_describe(number)}: give a number, such as 0.1")
        if not 0 <= number < 1:
            raise ValueError(f"{name} is {number}: give a number of at least 0, and less than 1")


def check_number(name: str, number: Any, tokens: Shape = ()):
    """Raises TypeError unless a number is real (it may be traced), ValueError for an array that is
    not of a number for each token."""
    dtype = getattr(number, "dtype", None)
    real = isinstance(number, int | float) if dtype is None else jnp.issubdtype(dtype, jnp.floating)
    if not real and not (dtype is not None and jnp.issubdtype(dtype, jnp.integer)):
        raise TypeError(f"{name} is {_describe(number)}: give a number")
    if np.shape(number) not in ((), tuple(tokens)):
        remedy = f"one number, or one for each token, {tuple(tokens)}" if tokens else "one number"
        raise ValueError(f"{name} has the shape {np.shape(number)}: give {remedy}")


def _describe(value) -> str:
    """Describes a value of a wrong type for a message."""
    if isinstance(value, jax.core.Tracer):
        return "an array that is traced"
    return f"an array of the type {value.dtype}" if hasattr(value, "dtype") else repr(value)


def check_key(name: str, key: Any):
    """Raises TypeError unless an argument is a single key of `jax.random`, typed or raw."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", ())
    if dtype is None:
        raise TypeError(f"{name} is {key!r}: give a key, such as jax.random.key(0)")
    if not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        try:
            shape = jax.random.wrap_key_data(key).shape
        except TypeError:
            raise TypeError(
                f"{name} is {dtype} of the shape {shape}: give a key, such as jax.random.key(0)"
            ) from None
    if shape:
        raise TypeError(f"{name} has {shape} keys: give one, or map over them by jax.vmap")


def check_log_probs(**arguments: ArrayLike):
    """Raises ValueError unless logarithms of probabilities are at most 0, up to rounding."""
    for name, array in arguments.items():
        numbers = concrete_values(array)
        if numbers is not None:
            numbers = numbers.astype(np.float64)
            limit = np.log1p(_rounding(array))
            refuse(name, numbers, ~(numbers <= limit), "logarithms of probabilities, at most 0")


def check_sums(name: str, probabilities: ArrayLike, remedy: str):
    """Raises ValueError unless probabilities sum to 1 along the last axis, up to rounding."""
    numbers = concrete_values(probabilities)
    if numbers is not None:
        sums = numbers.astype(np.float64).sum(axis=-1)
        is_wrong = ~(np.abs(sums - 1) <= _rounding(probabilities))
        if is_wrong.any():
            position = np.unravel_index(int(is_wrong.argmax()), is_wrong.shape)
            raise ValueError(f"{name} sum to {sums[position]}{_at(position)}: {remedy}")


def _rounding(array):
    """Returns how far from 1 a sum of probabilities of the array's type may be."""
    return ROUNDING if np.dtype(getattr(array, "dtype", float)).itemsize >= 4 else COARSE_ROUNDING


def check_words(table: dict, targets: Array | None = None, token_weights: Array | None = None):
    """Raises ValueError unless shapes agree and targets (of weight 0 aside) are in [0, V),
    TypeError unless they are integers. `table`: arguments of `check_shapes`, with an axis V."""
    token_arrays = {"targets": targets, "token_weights": token_weights}
    shapes = {name: (array, "...") for name, array in token_arrays.items() if array is not None}
    sizes = check_shapes(**table, **shapes, integers=shapes.keys() & {"targets"})
    if targets is not None:
        check_ids(sizes["V"], token_weights, targets=targets)


# ---- checks of the shapes of public functions' arguments, with errors that name the argument


def check_shapes(integers: Iterable = (), **arguments: tuple[Any, str]) -> dict[str, int]:
    """Raises ValueError unless arrays, each given as (array, its axes such as "... D"), agree.

    Axes of the same name must have the same size; "..." is any leading axes. Raises TypeError if an
    argument named in `integers` is not an array of integers. In compiled code, the shapes are
    checked when it is traced. Returns {axis: size} of the named axes.
    """
    sizes: dict[str, int] = {}
    argument_by_axis: dict[str, str] = {}
    for name, (array, axes) in arguments.items():
        shape, letters = np.shape(array), axes.split()
        description = f"{name} has the shape {shape}"
        axis_list = f"[{', '.join(letters)}]"
        leading = len(shape) - len(letters)
        if letters[:1] == ["..."]:
            shape = (shape[: leading + 1], *shape[leading + 1 :]) if leading >= -1 else ()
        if len(letters) != len(shape):
            raise ValueError(f"{description}: give {axis_list}")
        for letter, size in zip(letters, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                conflict = f"{letter} is {sizes[letter]} in {argument_by_axis[letter]}"
                raise ValueError(f"{description}, {axis_list}, but {conflict}")
            argument_by_axis.setdefault(letter, name)
        dtype = getattr(array, "dtype", np.dtype(int))
        if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 2:
            raise TypeError(f"{name} is of the type {dtype}: give bfloat16, or a wider type")
    for name in integers:
        if not hasattr(arguments[name][0], "dtype"):
            kind = type(arguments[name][0]).__name__
            raise TypeError(f"{name} is of the type {kind}: give an array of whole numbers")
        dtype = jnp.result_type(arguments[name][0])
        if not jnp.issubdtype(dtype, jnp.integer):
            raise TypeError(f"{name} is of the type {dtype}: give whole numbers")
    return sizes
