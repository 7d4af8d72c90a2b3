"""Checks of the shapes of public functions' arguments, with errors that name the argument."""

import jax.numpy as jnp
import numpy as np


def check_shapes(integers=(), **arguments):
    """Checks shapes of arrays when a function is traced; compiled code has no trace of it."""
    sizes: dict[str, int] = {}
    given_by: dict[str, str] = {}
    for name, (array, axes) in arguments.items():
        shape, letters = np.shape(array), axes.split()
        given = f"{name} has the shape {shape}"
        named = f"[{', '.join(letters)}]"
        leading = len(shape) - len(letters)
        if letters[:1] == ["..."]:
            shape = (shape[: leading + 1], *shape[leading + 1 :]) if leading >= -1 else ()
        if len(letters) != len(shape):
            raise ValueError(f"{given}: give {named}")
        for letter, size in zip(letters, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                other = f"{letter} is {sizes[letter]} in {given_by[letter]}"
                raise ValueError(f"{given}, {named}, but {other}")
            given_by.setdefault(letter, name)
    for name in integers:
        dtype = jnp.result_type(arguments[name][0])
        if not jnp.issubdtype(dtype, jnp.integer):
            raise TypeError(f"{name} is of the type {dtype}: give whole numbers")
