"""Small softmaxes, and comparisons of their losses and gradients with a formula."""

import jax
import numpy as np

from tests import references

TOKENS, SIZE = 7, 5
# (words, logits at a time, None for all): one block; blocks that do not divide the words, and do.
SIZES = [(13, None), (13, TOKENS * 4), (30, TOKENS * 5)]
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
NEAR = {"rtol": 1e-6, "atol": 1e-8}  # to differences


def problem(random, words, size=SIZE):
    """Hidden states, weights and bias."""
    return {
        "hidden": random.normal(size=(TOKENS, size)),
        "weights": random.normal(size=(words, size)),
        "bias": random.normal(size=words),
    }


def assert_values_and_gradients(functions, arrays, formula):
    """Compares functions of the arrays, alone and with their gradients, with formula(arrays) and
    its differences."""

    @jax.jit
    def evaluate(*arrays):
        axes = range(len(arrays))
        return [(f(*arrays), jax.value_and_grad(f, axes)(*arrays)) for f in functions]

    expected, slopes = formula(arrays), references.finite_differences(formula, arrays)
    for without_mass, (value, gradients) in evaluate(*arrays.values()):
        np.testing.assert_allclose(without_mass, expected, **CLOSE)
        np.testing.assert_allclose(value, expected, **CLOSE)
        for name, gradient in zip(arrays, gradients, strict=True):
            np.testing.assert_allclose(gradient, slopes[name], **NEAR, err_msg=name)
