"""The examples in the docstrings of the heads say what happens."""

import dataclasses
import doctest

import pytest

from zoo import heads

PUBLIC = [getattr(heads, name) for name in heads.__all__]
# Contracts, and a head that needs a file: see tests/heads/test_with_expert.py.
WITHOUT = {heads.Head, heads.Noise, heads.LetterNoise, heads.WithExpert}


def run(docstring, names):
    """Runs the examples of a docstring in these names, which get its own."""
    test = doctest.DocTestParser().get_doctest(docstring, names, "example", None, 0)
    report: list[str] = []
    failures, tried = doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert tried and not failures, "".join(report)


@pytest.fixture(scope="module")
def beginning():
    """The names with which the examples begin."""
    names: dict = {}
    run(heads.__doc__, names)
    return names


def test_every_public_head_has_an_example():
    without = {kind for kind in PUBLIC if ">>>" not in (kind.__doc__ or "")}
    assert without == WITHOUT
    assert all(dataclasses.is_dataclass(kind) for kind in PUBLIC if kind not in WITHOUT)


@pytest.mark.parametrize("kind", [kind for kind in PUBLIC if kind not in WITHOUT])
def test_example(kind, beginning):
    run(kind.__doc__, dict(beginning))
