"""Zoo: output layers for recurrent language models."""

from zoo.experiment import Evaluation, Experiment, Training
from zoo.lexicon import Lexicon

__all__ = ["Evaluation", "Experiment", "Lexicon", "Training"]
__version__ = "0.1.0"
