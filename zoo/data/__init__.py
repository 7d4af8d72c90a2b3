"""Data: from files to batches of word ids."""

from zoo.data.conllu import Conllu
from zoo.data.corpus import Corpus, Source
from zoo.data.text import Text

__all__ = ["Conllu", "Corpus", "Source", "Text"]
