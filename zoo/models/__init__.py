"""Models: components put together."""

from zoo.models.language_model import LanguageModel
from zoo.models.model import Model

__all__ = ["LanguageModel", "Model"]
