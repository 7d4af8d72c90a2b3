"""Values at the door of the public functions: what a docstring asks for and a shape does not tell.

Only what is known is looked at: nothing in compiled code, where arrays have no values yet.
"""

import jax
import numpy as np

# How far from 1 a sum of probabilities may be by rounding, of 32 bits or more, and of fewer.
ROUNDING, COARSE_ROUNDING = 1e-4, 0.05


def known(array) -> np.ndarray | None:
    """The numbers of an array; None where it is traced, computed when it is looked up, or other
    processes have parts of it."""
    if isinstance(array, jax.core.Tracer):
        return None
    if isinstance(array, jax.Array):
        return np.asarray(array) if array.is_fully_addressable else None
    found = np.asarray(array)
    return None if found.dtype == object else found


def refuse(name: str, array, wrong: np.ndarray, wanted: str):
    """ValueError that shows the first number for which `wrong`, a mask of its shape, is true."""
    if wrong.any():
        place = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise ValueError(f"{name} has {np.asarray(array)[place]}{_at(place)}: give {wanted}")


def _at(place):
    return f" at {[*map(int, place)]}" if place else ""


def check_ids(count: int, token_weights=None, **ids):
    """Checks that ids are in [0, count), but for tokens of weight 0, which may hold anything."""
    weights = None if token_weights is None else known(token_weights)
    for name, array in ids.items():
        numbers = known(array)
        if numbers is None or (weights is None and token_weights is not None):
            continue
        wrong = (numbers < 0) | (numbers >= count)
        wrong &= True if weights is None else weights != 0
        refuse(name, numbers, wrong, f"ids from 0 to {count - 1:,}")


def check_least(least: float, wanted: str, **arguments):
    """Checks that all numbers are at least so large, and finite."""
    for name, array in arguments.items():
        numbers = known(array)
        if numbers is not None:
            refuse(name, numbers, ~((numbers >= least) & (numbers < np.inf)), wanted)


def check_log_probs(**arguments):
    """Checks that logarithms of probabilities are not above 0, but by rounding."""
    for name, array in arguments.items():
        numbers = known(array)
        if numbers is not None:
            numbers = numbers.astype(np.float64)
            most = np.log1p(_rounding(array))
            refuse(name, numbers, ~(numbers <= most), "logarithms of probabilities, at most 0")


def check_sums(name: str, probabilities, remedy: str):
    """Checks that probabilities, [..., N], sum to 1 along the last axis, but for rounding."""
    numbers = known(probabilities)
    if numbers is not None:
        sums = numbers.astype(np.float64).sum(axis=-1)
        wrong = ~(np.abs(sums - 1) <= _rounding(probabilities))
        if wrong.any():
            place = np.unravel_index(int(wrong.argmax()), wrong.shape)
            raise ValueError(f"{name} sum to {sums[place]}{_at(place)}: {remedy}")


def _rounding(array):
    return ROUNDING if np.dtype(getattr(array, "dtype", float)).itemsize >= 4 else COARSE_ROUNDING
