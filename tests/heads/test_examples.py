"""The examples in the docstrings of the heads say what happens."""

import dataclasses

import pytest

from tests.examples import run_docstring
from zoo import heads

PUBLIC = [getattr(heads, name) for name in heads.__all__]
# Contracts.
WITHOUT = {heads.Head, heads.Noise}


@pytest.fixture(scope="module")
def beginning():
    """The names with which the examples begin."""
    names: dict = {}
    run_docstring(heads.__doc__, names)
    return names


def test_every_public_head_has_an_example():
    without = {kind for kind in PUBLIC if ">>>" not in (kind.__doc__ or "")}
    assert without == WITHOUT
    assert all(dataclasses.is_dataclass(kind) for kind in PUBLIC if kind not in WITHOUT)


@pytest.mark.parametrize("kind", [kind for kind in PUBLIC if kind not in WITHOUT])
def test_example(kind, beginning):
    run_docstring(kind.__doc__, dict(beginning))
