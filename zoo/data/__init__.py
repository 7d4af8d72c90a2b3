"""Data: from files to batches of word ids."""

from zoo.data.characters import Characters
from zoo.data.conllu import Conllu
from zoo.data.corpus import Corpus, Source
from zoo.data.facts import Facts
from zoo.data.micro import Micro
from zoo.data.mixed import Mixed
from zoo.data.overnight import Overnight
from zoo.data.prefixed import Prefixed
from zoo.data.realisations import Realisations
from zoo.data.text import Text
from zoo.data.vocabulary import Vocabulary

__all__ = [
    "Characters",
    "Conllu",
    "Corpus",
    "Facts",
    "Micro",
    "Mixed",
    "Overnight",
    "Prefixed",
    "Realisations",
    "Source",
    "Text",
    "Vocabulary",
]
