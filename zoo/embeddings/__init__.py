"""Embeddings: from words to vectors."""

from zoo.embeddings.char_cnn import CharCNN
from zoo.embeddings.concat import Concat
from zoo.embeddings.embedding import Embedding
from zoo.embeddings.features import Features
from zoo.embeddings.lookup import Lookup

__all__ = ["CharCNN", "Concat", "Embedding", "Features", "Lookup"]
