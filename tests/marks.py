"""Values of a parametrised test that are tried with the slow tests alone."""

import pytest


def slow(*values):
    """["a", *slow("b", "c")] tries "a" at once. A tuple is the values of several names."""
    return [
        pytest.param(*value, marks=pytest.mark.slow)
        if isinstance(value, tuple)
        else pytest.param(value, marks=pytest.mark.slow)
        for value in values
    ]
