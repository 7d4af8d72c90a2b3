"""A hypothesis's parts of a lattice's score are those of the best of all paths with its words."""

import itertools
import math
import sys

import numpy as np
import pytest

from zoo import __main__ as commands
from zoo.commands import program
from zoo.errors import UserError
from zoo.rescoring.lattice_rescoring import LatticeFolder, best_parts
from zoo.rescoring.model_features import Columns
from zoo.rescoring.reranking import Weights
from zoo.sources import nbest
from zoo.sources.lattices import Lattice, Link

# Two ways to say "a", by the node 1 and by the node 2: -1 - 2 x 1 and -2 - 2 x 0.25.
SLF = """lmscale=2 start=0 end=3
I=0
I=1
I=2
I=3
J=0 S=0 E=1 W=a a=-1 l=-1
J=1 S=0 E=2 W=a a=-2 l=-0.25
J=2 S=1 E=3 W=!NULL a=0 l=0
J=3 S=2 E=3 W=!NULL a=0 l=0
J=4 S=2 E=3 W=b a=-4 l=-1
"""


def paths(lattice):
    """(words, acoustic, language) of every path."""
    waiting, ended = [(0, (), 0.0, 0.0)], []
    while waiting:
        node, words, acoustic, language = waiting.pop()
        if node == lattice.nodes - 1:
            ended.append((words, acoustic, language))
        for link in lattice.links:
            if link.start == node:
                more = (link.word,) if link.word is not None else ()
                sums = acoustic + 0.7 * link.acoustic, language + 1.3 * link.language
                waiting.append((link.end, words + more, *sums))
    return ended


def test_parts_are_the_best_path_s_of_all_paths():
    random = np.random.default_rng(5)
    pairs = [*itertools.pairwise(range(6)), *itertools.combinations(range(6), 2)] * 2
    links = [
        Link(a, b, random.choice(["x", "y", None]), *random.normal(size=2), 0) for a, b in pairs
    ]
    lattice = Lattice("l", 6, tuple(sorted(links, key=lambda x: x.start)), 0.7, 1.3, -0.4)
    expected = {}
    for words, acoustic, language in paths(lattice):
        score = acoustic + language - 0.4 * len(words)
        expected[words] = max(expected.get(words, (-math.inf,)), (score, acoustic, language))
    assert len(expected) > 20
    found = best_parts(lattice, [*expected, ("z",), ("x",) * 9])
    np.testing.assert_allclose(found[:-2], [*expected.values()], rtol=1e-12)
    assert found[-2:] == [None, None]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lattices").mkdir()
    (tmp_path / "lattices" / "u1.slf").write_text(SLF)
    (tmp_path / "lattices" / "u2.slf").write_text(SLF.replace("l=-1\n", "l=-3\n"))
    (tmp_path / "l").write_text("u1 ||| a\nu1 ||| a b\nu1 ||| c\nu2 ||| a\n")
    (tmp_path / "r").write_text("u1\ta b\nu2\ta\n")
    return tmp_path


def test_lists_have_the_scores_of_their_lattices(folder):
    lists = [*Columns(lattices=LatticeFolder("lattices")).add(nbest.read_lists("l")[1])]
    # "c" is no path: the lowest of the list.
    assert [[h.features for h in one.hypotheses] for one in lists] == [
        [
            {"acoustic": -2, "language": -0.5},
            {"acoustic": -6, "language": -2.5},
            {"acoustic": -6, "language": -2.5},
        ],
        [{"acoustic": -2, "language": -0.5}],
    ]


def test_without_language_scores_there_is_no_such_feature(folder):
    plain = "\n".join(line.partition(" l=")[0] for line in SLF.splitlines())
    (folder / "lattices" / "u1.slf").write_text(plain)
    first, second = Columns(lattices=LatticeFolder("lattices")).add(nbest.read_lists("l")[1])
    assert first.hypotheses[0].features == {"acoustic": -1}
    assert second.hypotheses[0].features == {"acoustic": -2}


def test_both_commands_take_them(folder, monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["zoo", "rescore", *words])
        code = program.run(commands.main)
        return code, *capsys.readouterr()

    more = ("--lattices", "lattices", "--word-count")
    tune = ("tune", "l", "r", "--metric", "wer", "--weights", "w", *more)
    code, printed, errors = call(*tune, "--test", "l", "--test-references", "r")
    assert (code, errors) == (0, "") and printed.count(" 0.00 [0.00, 0.00]") == 4
    assert [*Weights.read("w").weights] == ["acoustic", "language", "words"]
    assert call("apply", "l", "w", "--best", *more) == (0, "u1 a b\nu2 a\n", "")
    (folder / "other").mkdir()
    for words, message in (
        ((*tune, "--test", "l", "--test-references", "r", "--test-lattices", "other"), "has 0 fil"),
        (
            ("tune", "l", "r", "--metric", "wer", "--test-lattices", "other"),
            "--test-lattices is for --test: give --test LISTS",
        ),
    ):
        code, _, errors = call(*words)
        assert code == 2 and message in errors


def test_what_has_no_lattice_is_named(folder):
    one = LatticeFolder("lattices")
    with pytest.raises(UserError, match="lattices has 0 files for the list 'u3'"):
        one.read("u3")
    with pytest.raises(UserError, match=r"lattices has 0 files for the list '../u1'"):
        one.read("../u1")
    (folder / "lattices" / "u1.lat").write_text("u1\n0 1 a 1,2\n1\n\nu2\n0 1 a 1,2\n1\n")
    with pytest.raises(UserError, match="lattices has 2 files for the list 'u1'"):
        one.read("u1")
    (folder / "lattices" / "u1.slf").unlink()
    with pytest.raises(UserError, match=r"u1.lat has 2 lattices: give one a file"):
        one.read("u1")
    (folder / "l").write_text("u2 ||| c\n")
    with pytest.raises(UserError, match=r"no hypothesis of the list 'u2' \(line 1\) is a path"):
        [*Columns(lattices=one).add(nbest.read_lists("l")[1])]
