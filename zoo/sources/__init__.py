"""Sources: files read, and corpora made of them."""

from typing import TYPE_CHECKING

from zoo import lazy

if TYPE_CHECKING:
    from zoo.sources.as_pairs import AsPairs
    from zoo.sources.characters import Characters
    from zoo.sources.conllu import Conllu
    from zoo.sources.corpus import Corpus, Source
    from zoo.sources.facts import Facts
    from zoo.sources.micro.micro import Micro
    from zoo.sources.micro.pairs import MicroPairs
    from zoo.sources.mixed import Mixed
    from zoo.sources.overnight import Overnight
    from zoo.sources.pairs import Pairs
    from zoo.sources.prefixed import Prefixed
    from zoo.sources.realisations import Realisations
    from zoo.sources.text import Text

__getattr__, __dir__ = lazy.doors(__name__, __file__)

__all__ = [
    "AsPairs",
    "Characters",
    "Conllu",
    "Corpus",
    "Facts",
    "Micro",
    "MicroPairs",
    "Mixed",
    "Overnight",
    "Pairs",
    "Prefixed",
    "Realisations",
    "Source",
    "Text",
]
