"""Zoo: output layers for recurrent language models.

The names that a config needs are here; components are imported from their packages, such as
zoo.heads. `import zoo.heads` imports only the packages that heads need.
"""

from typing import TYPE_CHECKING

from zoo import lazy
from zoo.version import VERSION as __version__

if TYPE_CHECKING:
    from zoo.comparison.comparison import compare
    from zoo.configuration.fields import changed
    from zoo.evaluation.load import load, load_translator
    from zoo.experiment import Evaluation, Experiment, Parallel, Training
    from zoo.lexicon import Lexicon
    from zoo.training.train import train

# Imported on first access.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "zoo.comparison.comparison": ("compare",),
        "zoo.configuration.fields": ("changed",),
        "zoo.evaluation.load": ("load", "load_translator"),
        "zoo.experiment": ("Evaluation", "Experiment", "Parallel", "Training"),
        "zoo.lexicon": ("Lexicon",),
        "zoo.training.train": ("train",),
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
