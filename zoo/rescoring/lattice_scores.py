"""Acoustic and language scores of n-best hypotheses, read from the recogniser's lattices.

A list often has one score that adds acoustics and language model in the recogniser's proportion.
Among a lattice's paths with a hypothesis's words the best by the recogniser's own score

    sum (acoustic_scale * a + language_scale * l + word_penalty a word)

separates the two again, so that they can be weighed anew beside other models.
"""

import collections
import dataclasses
import glob
import math
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from zoo.errors import UserError, shortened
from zoo.sources import files
from zoo.sources.hypotheses import NBestList
from zoo.sources.lattices import Lattice, read_lattices

ACOUSTIC, LANGUAGE = "acoustic", "language"


class Parts(NamedTuple):
    """Scores of the best path with some words."""

    score: float  # the recogniser's whole score, nats, scaled
    acoustic: float
    language: float


def best_parts(lattice: Lattice, sentences: Sequence[Sequence[str]]) -> list[Parts | None]:
    """Returns the scores of the best path with the words of each sentence; None without such a
    path.

    All sentences are followed along the lattice together, as a tree of their prefixes.
    """
    tree: list[dict[str, int]] = [{}]
    leaves = [_insert(tree, words) for words in sentences]
    links = collections.defaultdict(list)
    for link in lattice.links:
        acoustic = lattice.acoustic_scale * link.acoustic
        language = lattice.language_scale * link.language
        score = acoustic + language + lattice.word_penalty * (link.word is not None)
        links[link.start].append((link.word, link.end, Parts(score, acoustic, language)))
    arrived: list[dict[int, Parts]] = [{} for _ in range(lattice.nodes)]
    arrived[0][0] = Parts(0.0, 0.0, 0.0)
    for node in range(lattice.nodes - 1):  # no link goes back
        for prefix, before in arrived[node].items():
            for word, end, parts in links[node]:
                after = prefix if word is None else tree[prefix].get(word)
                if after is None:
                    continue
                old, score = arrived[end].get(after), before.score + parts.score
                if math.isfinite(score) and (old is None or score > old.score):
                    acoustic, language = before.acoustic + parts.acoustic, parts.language
                    arrived[end][after] = Parts(score, acoustic, before.language + language)
        arrived[node] = {}
    return [arrived[-1].get(leaf) for leaf in leaves]


def _insert(tree, words):
    """Inserts words into a tree of prefixes; returns their node."""
    node = 0
    for word in words:
        if word not in tree[node]:
            tree[node][word] = len(tree)
            tree.append({})
        node = tree[node][word]
    return node


@dataclasses.dataclass(frozen=True)
class LatticeFolder:
    """A folder with a file for each lattice, ID.slf, ID.slf.gz or another ending."""

    path: str

    def read(self, id: str) -> Lattice:
        """Reads the lattice of a list."""
        folder = files.find(self.path)
        plain = pathlib.PurePath(id).name == id
        found = sorted(folder.glob(f"{glob.escape(id)}.*")) if plain else []
        if len(found) != 1:
            raise UserError(
                f"{folder} has {len(found)} files for the list {shortened(id, 80)!r}: give a "
                "folder with one lattice a list, ID.slf or ID.slf.gz."
            )
        lattices = [*read_lattices(str(found[0]), id)]
        if len(lattices) != 1:
            raise UserError(f"{found[0]} has {len(lattices)} lattices: give one a file.")
        return lattices[0]

    def features(self, one: NBestList) -> dict[str, list[float]]:
        """Returns {"acoustic", and "language" where links have such scores: values of each
        hypothesis}.

        A hypothesis without a path has the lowest value of its list.
        """
        lattice = self.read(one.id)
        parts = best_parts(lattice, [hypothesis.words for hypothesis in one.hypotheses])
        known = [some for some in parts if some is not None]
        if not known:
            raise UserError(
                f"no hypothesis of the list {shortened(one.id, 80)!r} (line "
                f"{one.hypotheses[0].line}) is a path of its lattice in {self.path}: give the "
                "lattices from which the lists were made."
            )
        names = (ACOUSTIC, *([LANGUAGE] if any(link.language for link in lattice.links) else []))
        lowest = {name: min(getattr(some, name) for some in known) for name in names}
        return {
            name: [low if some is None else getattr(some, name) for some in parts]
            for name, low in lowest.items()
        }
