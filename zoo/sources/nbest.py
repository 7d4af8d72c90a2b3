"""Lines of n-best lists, in the format of Moses and Joshua:

    id ||| words ||| features ||| score

Hypotheses of one list stand together and have the same id; features are "Name= number ...".
"""

from collections.abc import Mapping, Sequence

SEPARATOR = "|||"


def fields(line: str) -> list[str]:
    """The fields of a line, with the blanks around them."""
    return line.split(SEPARATOR)


def line(name: str | int, words: Sequence[str], features: Mapping[str, float], score: float) -> str:
    """A hypothesis as a line, without its end; a separator within a word is written "&#124;" three
    times, as Moses does.

    Args:
      name: of the list. features: {name: value}; several hypotheses have the same, in one order.
    """
    text = " ".join(words).replace(SEPARATOR, "&#124;" * 3)
    values = " ".join(f"{name}= {value:.9g}" for name, value in features.items())
    return f" {SEPARATOR} ".join((str(name), text, values, f"{score:.9g}"))
