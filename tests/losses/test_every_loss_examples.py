"""What the docstrings of the public losses show is what comes out."""

import doctest
import importlib
import inspect
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo import losses

MODULES = sorted(
    path.stem
    for path in pathlib.Path(losses.__file__).parent.glob("*.py")
    if path.stem != "__init__"
)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.slow
def test_examples_give_what_they_show(name):
    module = importlib.import_module(f"zoo.losses.{name}")
    with np.printoptions(precision=4, suppress=True):
        doctest_results = doctest.testmod(
            module, globs={"jax": jax, "jnp": jnp, "np": np, "losses": losses}
        )
    assert not doctest_results.failed


@pytest.mark.parametrize("name", losses.__all__)
def test_public_functions_are_documented(name):
    """What it computes, an item a parameter, what it gives, an example."""
    function = getattr(losses, name)
    if inspect.isclass(function):
        return
    text = inspect.getdoc(function)
    assert re.match(r"(Computes|Draws|Finds|Makes) [^\n]+\.\n", text), text
    arguments_text = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    items = re.findall(r"^  (\w[\w, ]*): ", arguments_text, re.MULTILINE)
    assert ", ".join(items).split(", ") == list(inspect.signature(function).parameters)
    assert "\nReturns:\n" in text
    assert "\nExample:\n  >>> " in text


def test_the_page_of_losses_has_all_of_them():
    page = (pathlib.Path(__file__).parent.parent.parent / "docs" / "losses.md").read_text()
    assert {name for name in losses.__all__ if f"`{name}`" not in page} == set()
