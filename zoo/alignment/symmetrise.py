"""Symmetrisation of alignments of both directions (Och and Ney 2003; Koehn et al. 2003, 2005).

The intersection has few, precise links, the union many. The growing methods start from the
intersection and add neighbouring links of the union that cover a word without a link.
"""

from collections.abc import Collection, Iterable

Link = tuple[int, int]
METHODS = ("intersection", "grow-diag", "grow-diag-final", "grow-diag-final-and", "union")
# The diagonal ones last, as in the published pseudo-code: the order decides what covers a word.
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(
    forward: Collection[Link], backward: Collection[Link], method: str = "grow-diag"
) -> list[Link]:
    """Combines the alignments of a sentence pair in both directions.

    Args:
      forward: links (source position, target position) of the model of targets given sources.
      backward: links of the model of sources given targets, also (source, target).
      method: "intersection"; "union"; "grow-diag", which grows from the intersection within the
        union by the eight neighbours; "grow-diag-final", which then adds links of `forward`, and
        after them links of `backward`, with at least one word that has no link yet;
        "grow-diag-final-and", which adds such links only if both words have no link yet.

    Returns:
      Links sorted by source position, then by target position.

    Raises:
      ValueError: `method` is not one of these.

    Example:
      >>> forward, backward = [(0, 0), (1, 1), (2, 1)], [(0, 0), (1, 1), (1, 2)]
      >>> alignment.symmetrise(forward, backward, "intersection")
      [(0, 0), (1, 1)]
      >>> alignment.symmetrise(forward, backward, "grow-diag")
      [(0, 0), (1, 1), (1, 2), (2, 1)]
    """
    if method not in METHODS:
        raise ValueError(f"method {method!r}: give one of {', '.join(METHODS)}")
    both, either = {*forward} & {*backward}, {*forward} | {*backward}
    if method in ("intersection", "union"):
        return sorted(both if method == "intersection" else either)
    grown = _Growing(both)
    grown.grow(either)
    if method != "grow-diag":
        # Each direction in turn: the first one's links are there when the second is looked at.
        for links in (forward, backward):
            grown.add(sorted(links), strict=method.endswith("-and"))
    return sorted(grown.links)


class _Growing:
    """Links, and the words that they cover."""

    def __init__(self, links):
        self.links = {*links}
        self.sources, self.targets = {i for i, _ in links}, {j for _, j in links}

    def put(self, link):
        """Adds a link, and covers its words."""
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

    def grow(self, either: Collection[Link]):
        """Adds neighbours within `either` that cover a word without a link, until none is left."""
        grown = True
        while grown:
            grown = False
            for i, j in sorted(self.links):
                for down, right in _NEIGHBOURS:
                    link = (i + down, j + right)
                    new = link[0] not in self.sources or link[1] not in self.targets
                    if link in either and link not in self.links and new:
                        self.put(link)
                        grown = True

    def add(self, links: Iterable[Link], strict: bool):
        """Adds each link that covers a word without a link, or, if `strict`, two such words."""
        for link in links:
            free = (link[0] not in self.sources, link[1] not in self.targets)
            if all(free) if strict else any(free):
                self.put(link)
