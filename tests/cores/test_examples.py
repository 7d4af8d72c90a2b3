"""The examples in the docstrings of the cores say what happens."""

import dataclasses

import pytest

from tests.examples import run_docstring
from zoo import cores

PUBLIC = [getattr(cores, name) for name in cores.__all__]


@pytest.mark.parametrize("kind", [kind for kind in PUBLIC if dataclasses.is_dataclass(kind)])
def test_example(kind):
    names: dict = {}
    run_docstring(cores.__doc__, names)
    run_docstring(kind.__doc__, names)
