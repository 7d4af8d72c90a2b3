"""Models composed of components: language models, and encoder-decoders."""

from zoo.models.language_model import LanguageModel, Model
from zoo.models.sequence_to_sequence import SequenceToSequence

__all__ = ["LanguageModel", "Model", "SequenceToSequence"]
