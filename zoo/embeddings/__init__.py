"""Embeddings: from words to vectors."""

from zoo.embeddings.embedding import Embedding
from zoo.embeddings.features import Features
from zoo.embeddings.lookup import Lookup

__all__ = ["Embedding", "Features", "Lookup"]
