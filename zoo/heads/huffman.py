"""The hierarchical softmax over the Huffman tree of the words: see `zoo.losses.huffman`."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays.parameter_sharding import HIDDEN, WORDS, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params, Tables
from zoo.errors import UserError
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.losses import huffman
from zoo.losses.huffman import huffman_paths


@dataclasses.dataclass(frozen=True)
class HuffmanSoftmax(Head):
    """A product of binary decisions along the Huffman code of a word.

    Attributes:
      initial_scale: vectors start uniform in +-initial_scale, the biases at 0.

    Example:
      >>> head = heads.HuffmanSoftmax()
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    initial_scale: float = 0.05

    row_tables = ("weights", "bias")
    ordered_by_frequency = True
    parameter_axes = axes(weights=(WORDS, HIDDEN), bias=(WORDS,))
    array_shapes = Shapes({"weights": "N D", "bias": "N"}, {"nodes": "int V L", "turns": "V L"})

    def _tables(self, lexicon: Lexicon) -> Tables:
        nodes, turns = huffman_paths(lexicon.counts)
        return {"nodes": jnp.asarray(nodes), "turns": jnp.asarray(turns)}

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"weights": [V - 1, D], "bias": [V - 1]}, with a row for each inner node."""
        if len(lexicon) < 2:
            raise UserError(
                f"HuffmanSoftmax needs at least two words, and the lexicon has {len(lexicon)}: "
                "give a larger one."
            )
        weights = uniform(key, (len(lexicon) - 1, hidden_size), self.initial_scale)
        return {"weights": weights, "bias": jnp.zeros(len(lexicon) - 1)}

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        return (("words", params["weights"].shape[0] + 1, len(tables["nodes"])),)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        paths = tables["nodes"][targets], tables["turns"][targets]
        log_prob = -huffman.path_loss(hidden, params["weights"], params["bias"], *paths)
        return log_prob, jnp.zeros_like(log_prob)  # normalised as it stands

    def _log_probs(self, params, tables, hidden, context, prepared):
        paths = tables["nodes"], tables["turns"]
        return huffman.path_log_probs(hidden, params["weights"], params["bias"], *paths)
