"""The examples in the docstrings of public names say what happens, and every name has one."""

import dataclasses
import functools
import importlib
import inspect

import numpy as np
import pytest

from tests.examples import run_docstring

# Rooms whose public names have examples, each begun by the docstring of the room, and those that
# need none: contracts, and what the example of a function shows.
ROOMS = {
    "zoo.alignment": {"UnknownWords"},
    "zoo.attention": {"Attention"},
    "zoo.cores": {"Core", "Stacked"},
    "zoo.data": {"Source"},
    "zoo.decoding": {"Hypotheses"},
    "zoo.embeddings": {"Embedding"},
    "zoo.heads": {"Head", "Noise"},
    "zoo.interop.linen": set(),
    "zoo.interop.nnx": set(),
    "zoo.lexicon": set(),
    "zoo.optimizers": {"Schedule", "Optimizer", "history_ends"},
    "zoo.row_updates": {
        *("RowAdagrad", "RowAdam", "RowGradient", "RowSGD", "SparseGradients"),
        *("join", "merge_rows", "row_rule", "split"),
    },
    "zoo.priors": {
        *("Background", "ContextualBackground", "Expert", "FeaturePrior", "StringClass"),
    },
    "zoo.configuration": set(),
    "zoo.lab.papers": set(),
    "zoo.lab.rescoring": {"Metric"},
}
# Each compiles something.
SLOW = {
    *("Arpa", "Bahdanau", "CharCNN", "CharLSTM", "CNNSoftmax", "Concat", "Evidence", "Features"),
    *("GRU", "Grammar", "LetterNoise", "Mert", "Mira", "NCE", "SampledLogLinear", "average"),
    *("AdaptiveSoftmax", "BeamSearch", "Bidirectional", "BlackOut", "HierarchicalSoftmax"),
    *("KneserNey", "KnowledgeBase", "MixtureOfContexts", "NGram", "draw"),
    *("Cosine", "Elman", "HuffmanSoftmax", "ImportanceSampling", "LastWords", "Luong"),
    *("MixtureOfSoftmaxes", "PrefixWords", "RecentWords", "Sampling", "WithCache", "WithExpert"),
}


def public(room: str) -> dict[str, object]:
    """The functions and classes that a room shows."""
    module = importlib.import_module(room)
    names = getattr(module, "__all__", None)
    if names is None:  # a module: what is defined in it
        members = {n: value for n, value in vars(module).items() if not n.startswith("_")}
        names = [n for n, value in members.items() if getattr(value, "__module__", "") == room]
    members = {name: getattr(module, name) for name in names}
    return {
        n: member
        for n, member in members.items()
        if inspect.isclass(member) or inspect.isfunction(member)
    }


PUBLIC = {
    f"{room}.{name}": (room, member)
    for room, without in ROOMS.items()
    for name, member in public(room).items()
    if name not in without
}


@functools.cache
def beginning(room: str) -> dict:
    """The names with which the examples of a room begin; those of a module are its package's."""
    names: dict = {}
    docstring = importlib.import_module(room).__doc__ or ""
    package = room if ">>>" in docstring else room.rpartition(".")[0]
    run_docstring(importlib.import_module(package).__doc__, names)
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_what_needs_no_example_is_there(room):
    assert ROOMS[room] <= public(room).keys()


def test_heads_and_cores_are_dataclasses():
    for room in ("zoo.heads", "zoo.cores"):
        for name, member in public(room).items():
            record = dataclasses.is_dataclass(member) or hasattr(member, "_fields")
            assert record or not inspect.isclass(member) or name in ROOMS[room]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.rpartition(".")[2] in SLOW else ())
        for name in PUBLIC
    ],
)
def test_example(name, tmp_path, monkeypatch):
    room, member = PUBLIC[name]
    monkeypatch.chdir(tmp_path)
    with np.printoptions(precision=4, suppress=True):
        names = dict(beginning(room))
        if room == "zoo.data":  # which begins with files
            run_docstring(importlib.import_module(room).__doc__, names)
        run_docstring(member.__doc__, names)
