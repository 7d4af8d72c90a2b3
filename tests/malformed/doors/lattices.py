"""Lattices in HTK's standard format and in Kaldi's text form, and lattices of n-best lists."""

from zoo.lab.evaluation.nbest import Hypothesis, NBestList
from zoo.lab.rescoring.lattices import read_lattices
from zoo.lab.rescoring.model_features import LatticeFolder

SLF = """VERSION=1.0
UTTERANCE=u
lmscale=2 acscale=0.5 wdpenalty=-1
start=0 end=2
N=3 L=3
I=0 t=0
I=1 t=0.5
I=2 t=1
J=0 S=0 E=1 W=a a=-1 l=-2
J=1 S=1 E=2 W=b a=-3 l=-4
J=2 S=0 E=2 W=c a=-5 l=-6
"""
KALDI = """u
0 1 a 1,2,3_4
0 2 b 3,4
1 2 c 5,6
2 0.5,0.25
"""


def _write(content, path):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _read(content, folder):
    _write(content, folder / "file")
    for _ in read_lattices(str(folder / "file")):
        pass


def _read_with_changes(text):
    """Reads a good lattice in which texts are replaced: (old, new, old, new ...)."""

    def call(changes, folder):
        content = text
        for good, bad in zip(changes[::2], changes[1::2], strict=True):
            assert good in content
            content = content.replace(good, bad)
        _read(content, folder)

    return call


def _score_list(arguments, folder):
    """The features of a list with the words "a b": its id, and {name: content} of the folder."""
    id, files = arguments
    (folder / "lattices").mkdir()
    for name, content in files.items():
        _write(content, folder / "lattices" / name)
    nbest_list = NBestList(id, [Hypothesis(1, "a b", {})])
    LatticeFolder(str(folder / "lattices")).features(nbest_list)


NAMES = {"SLF": SLF, "KALDI": KALDI}
CALLS = {
    "lattice": _read,
    "SLF changed": _read_with_changes(SLF),
    "Kaldi's lattice changed": _read_with_changes(KALDI),
    "lattices of a list": _score_list,
}
