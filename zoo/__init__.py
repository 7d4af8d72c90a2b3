"""Zoo: output layers for recurrent language models.

The names that a config needs are here; components are imported from their packages, such as
zoo.heads. `import zoo.heads` imports only the packages that heads need.
"""

from zoo.base import lazy
from zoo.version import VERSION as __version__

__getattr__, __dir__, _names = lazy.names(__name__)
__all__ = ["__version__", *_names]
