"""Models: components put together."""

from zoo.models.language_model import LanguageModel

__all__ = ["LanguageModel"]
