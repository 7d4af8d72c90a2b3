"""Zoo: output layers for recurrent language models.

What a config needs stands here; parts are imported from their rooms, such as zoo.heads, which need
nothing but what they use: `import zoo.heads` does not read the rest of the house.
"""

import importlib
from typing import TYPE_CHECKING

from zoo import former
from zoo.version import VERSION as __version__

if TYPE_CHECKING:
    from zoo.experiment import Evaluation, Experiment, Training
    from zoo.lexicon import Lexicon
    from zoo.recipes.changes import changed

# Where the names are defined that are imported when they are asked for.
_HOMES = {
    "Evaluation": "zoo.experiment",
    "Experiment": "zoo.experiment",
    "Lexicon": "zoo.lexicon",
    "Training": "zoo.experiment",
    "changed": "zoo.recipes",
}

former.install()

__all__ = ["Evaluation", "Experiment", "Lexicon", "Training", "__version__", "changed"]


def __getattr__(name: str):
    """The names of `__all__`, each from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
