"""Former names of modules import what stands there now, and say so."""

import importlib
import subprocess
import sys

import pytest

from zoo import former


@pytest.mark.parametrize("name", former.MODULES)
def test_a_former_name_is_the_module_of_today(name):
    now = importlib.import_module(former.MODULES[name])
    specification = now.__spec__
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"^{name} is now {former.MODULES[name]}$"):
        module = importlib.import_module(name)
    assert module is now
    assert now.__spec__ is specification
    assert now.__name__ == former.MODULES[name]


def test_names_within_are_imported_from_there():
    source = "from zoo.spelling import Spelling; from zoo import rows; print(Spelling, rows.take)"
    command = [sys.executable, "-W", "ignore", "-c", source]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "zoo.lexicon.spelling.Spelling" in finished.stdout


def test_what_never_was_is_not_there():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("zoo.nothing")
