"""Components that lack a method of their contract are refused when they are made, by its name."""

import dataclasses

import jax
import pytest
from flax import linen, nnx

from zoo.alignment import UnknownWords
from zoo.attention import Attention
from zoo.interop.operations import HeadOperations
from zoo.lab.rescoring import Metric
from zoo.layers.core import Stacked

CONTRACTS = {
    UnknownWords: ("marks", "annotate", "restore"),
    Attention: ("_init_scores", "_keys", "_scores"),
    Stacked: ("_recurrence",),
    Metric: ("statistics", "figure", "size", "signature"),
}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_an_unfinished_component_is_refused(contract):
    @dataclasses.dataclass(frozen=True)
    class Unfinished(contract):
        pass

    with pytest.raises(TypeError, match="Unfinished") as error:
        Unfinished()
    for method in CONTRACTS[contract]:
        assert method in str(error.value)


@pytest.mark.parametrize("library", [linen, nnx])
def test_an_unfinished_module_is_refused(library):
    class Unfinished(library.Module, HeadOperations):
        pass

    with pytest.raises(TypeError, match=r"Unfinished.*_arrays"):
        Unfinished()


def test_finished_modules_are_modules_still():
    class Finished(linen.Module, HeadOperations):
        def _arrays(self, hidden_size):
            return {"size": hidden_size}, {}

        def sizes(self, hidden):
            return self._arrays(hidden.shape[-1])[0]

    hidden = jax.numpy.ones((3, 5, 7))
    assert Finished().apply({}, hidden, method="sizes") == {"size": 7}
