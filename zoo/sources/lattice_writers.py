"""Lattices as text: HTK's standard lattice format, and Kaldi's.

What is written is read back by `zoo.sources.lattices` as an equal lattice, but for the lines of its
links; in Kaldi's form, which has no scales, as one whose paths have equal scores.
"""

import collections
from collections.abc import Iterator

from zoo.errors import UserError, shortened
from zoo.sources.lattices import Lattice


def slf_lines(lattice: Lattice) -> Iterator[str]:
    """The lines of a lattice in SLF with their ends: words on links, natural logarithms.

    Args:
      lattice: the lattice.
    """
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
    """A value; in quotation marks where it would not be read as one otherwise."""
    if '"' not in text and len(text.split()) == 1:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def kaldi_lines(lattice: Lattice) -> Iterator[str]:
    """The lines of a lattice in Kaldi's text form with their ends, and a blank one.

    Costs are negative scores, in which the scales and the word penalty are. Links to the end
    without a word are the costs of final states, where no state has several.

    Args:
      lattice: the lattice.

    Raises:
      UserError: the id or a word has blanks, or is what stands for no word in this form.
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
