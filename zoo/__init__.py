"""Zoo: output layers for recurrent language models.

The names that a config needs are here; components are imported from their packages, such as
zoo.heads. `import zoo.heads` imports only the packages that heads need.
"""

from typing import TYPE_CHECKING

from zoo.base import lazy
from zoo.version import VERSION as __version__

if TYPE_CHECKING:
    from zoo.configuration.fields import changed
    from zoo.experiment import Evaluation, Experiment, Parallel, Training
    from zoo.lab.comparison.comparison import compare
    from zoo.lab.evaluation.load import load, load_translator
    from zoo.lab.training.train import train
    from zoo.lexicon import Lexicon

# Imported on first access.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "zoo.lab.comparison.comparison": ("compare",),
        "zoo.configuration.fields": ("changed",),
        "zoo.lab.evaluation.load": ("load", "load_translator"),
        "zoo.experiment": ("Evaluation", "Experiment", "Parallel", "Training"),
        "zoo.lexicon": ("Lexicon",),
        "zoo.lab.training.train": ("train",),
    },
)

__all__ = [
    "Evaluation",
    "Experiment",
    "Lexicon",
    "Parallel",
    "Training",
    "__version__",
    "changed",
    "compare",
    "load",
    "load_translator",
    "train",
]
