"""Zoo: output layers for recurrent language models."""

from zoo.experiment import Evaluation, Experiment, Training
from zoo.lexicon import Lexicon
from zoo.recipe_changes import changed

__all__ = ["Evaluation", "Experiment", "Lexicon", "Training", "changed"]
__version__ = "0.1.0"
