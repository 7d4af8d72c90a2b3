"""Writers of lattices: HTK's standard lattice format (SLF), and Kaldi's text format.

`zoo.sources.lattices` reads a written SLF lattice back as an equal lattice, except for the line
numbers of its links and for posteriors, which are not written; it refuses links of probability 0.
Kaldi's format has no scales: only the scores of paths stay equal.
"""

import collections
import re
from collections.abc import Iterator

from zoo.errors import UserError, shortened
from zoo.sources.lattices import Lattice


def slf_lines(lattice: Lattice) -> Iterator[str]:
    """Yields the lines of a lattice in SLF with line breaks: words on links, natural logarithms."""
    yield f"VERSION=1.0\nUTTERANCE={_quoted(lattice.id)}\n"
    yield f"acscale={lattice.acoustic_scale!r} lmscale={lattice.language_scale!r} "
    yield f"wdpenalty={lattice.word_penalty!r}\nstart=0 end={lattice.nodes - 1}\n"
    yield f"N={lattice.nodes} L={len(lattice.links)}\n"
    for node in range(lattice.nodes):
        yield f"I={node}\n"
    for number, link in enumerate(lattice.links):
        word = "!NULL" if link.word is None else _quoted(link.word)
        yield (
            f"J={number} S={link.start} E={link.end} W={word} a={link.acoustic!r} "
            f"l={link.language!r}\n"
        )


def _quoted(text):
    """Formats a value, in quotation marks where needed."""
    if not re.search(r"""["\\\s]|^'|^$""", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def kaldi_lines(lattice: Lattice) -> Iterator[str]:
    """Yields the lines of a lattice in Kaldi's text format with line breaks, then a blank line.

    Costs are negative scores with the scales and the word penalty multiplied in. Links to the end
    without a word are written as final states, if no state has several of them.
    """
    for text in (lattice.id, *lattice.words):
        if len(text.split()) != 1 or text == "0":
            raise UserError(
                f"Kaldi's form of lattices cannot hold {shortened(text, 80)!r} in the lattice "
                f"{shortened(lattice.id, 80)!r}: write SLF."
            )
    yield f"{lattice.id}\n"
    last = [link for link in lattice.links if link.end == lattice.nodes - 1]
    most = max(collections.Counter(link.start for link in last).values())
    final = most == 1 and all(link.word is None for link in last)
    for link in lattice.links:
        penalty = lattice.word_penalty if link.word is not None else 0.0
        graph = lattice.language_scale * link.language + penalty
        costs = f"{0.0 - graph},{0.0 - lattice.acoustic_scale * link.acoustic}"
        if final and link.end == lattice.nodes - 1:
            yield f"{link.start} {costs}\n"
        else:
            word = "<eps>" if link.word is None else link.word
            yield f"{link.start} {link.end} {word} {costs},\n"
    yield "\n" if final else f"{lattice.nodes - 1}\n\n"
