"""Former names of modules import what stands there now, and say so."""

import dataclasses
import importlib
import subprocess
import sys

import pytest

from tests import examples
from zoo import embeddings, former, heads


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


def test_former_names_of_methods_give_those_of_today():
    head = heads.MixtureOfSoftmaxes(components=3)
    with pytest.warns(DeprecationWarning, match=r"MixtureOfSoftmaxes\.width is now scores_per_tok"):
        assert head.width(7) == 21
    with pytest.warns(DeprecationWarning, match="laid_out_by_counts is now ordered_by_frequency"):
        assert heads.HuffmanSoftmax().laid_out_by_counts
    with pytest.warns(DeprecationWarning, match=r"Lookup\.notes is now warnings"):
        assert embeddings.Lookup().notes(None) == {}
    with pytest.raises(AttributeError, match="'Softmax' object has no attribute 'hight'"):
        heads.Softmax().hight  # noqa: B018


def test_a_method_written_by_a_former_name_is_used():
    with pytest.warns(DeprecationWarning, match=r"Own\.notes is now warnings"):

        @dataclasses.dataclass(frozen=True)
        class Own(heads.Softmax):
            width: int = 5  # a field is no method

            def notes(self, lexicon):
                return {"own": len(lexicon)}

    lexicon = examples.plain_lexicon(2)
    assert Own().warnings(lexicon) == {"own": 2}
    assert Own().scores_per_token(7) == 7 and Own().width == 5
