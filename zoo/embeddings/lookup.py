"""A vector a word."""

import dataclasses

import jax

from zoo import rows
from zoo.embeddings.embedding import Embedding
from zoo.errors import check_least


@dataclasses.dataclass(frozen=True)
class Lookup(Embedding):
    """e(x) = table[x].

    Attributes:
      size: E. initial_scale: the table starts uniform in +-initial_scale.
    """

    size: int = 256
    initial_scale: float = 0.05

    row_tables = ("table",)

    def __post_init__(self):
        check_least(self, "model.embedding", size=1)

    def init(self, key, lexicon):
        """{"table": [V, E]}."""
        shape, scale = (len(lexicon), self.size), self.initial_scale
        return {"table": jax.random.uniform(key, shape, minval=-scale, maxval=scale)}

    def apply(self, params, tables, words):
        """words int32 [...] -> [..., E]."""
        return rows.take(params["table"], words)
