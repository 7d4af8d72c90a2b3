"""Sources of text: each module reads one kind of file, or generates a corpus."""

from typing import TYPE_CHECKING

from zoo.sources.conllu import Conllu as Conllu
from zoo.sources.micro import Micro as Micro
from zoo.sources.micro import MicroPairs as MicroPairs
from zoo.sources.mixed import Mixed as Mixed
from zoo.sources.pairs import AsPairs as AsPairs
from zoo.sources.pairs import Pairs as Pairs
from zoo.sources.pairs import Prefixed as Prefixed
from zoo.sources.pairs import RawPairs as RawPairs
from zoo.sources.source import Corpus as Corpus
from zoo.sources.source import Source as Source
from zoo.sources.text import Characters as Characters
from zoo.sources.text import RawText as RawText
from zoo.sources.text import Text as Text

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = sorted(name for name, value in globals().items() if isinstance(value, type))
