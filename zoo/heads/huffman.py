"""The hierarchical softmax over a binary tree: a word as the turns on the way to it.

Morin and Bengio (2005); Mikolov et al. (2013), appendix. The tree is that of the Huffman code of
the training counts, so that frequent words are near the root. Each of the V - 1 inner nodes n
decides by a sigmoid; with turns s = +1 (first child) or -1 (second) along the path of x,

    p(x | h) = prod_{(n, s) on the path of x} sigmoid(s (w_n . h + c_n)),

normalised by construction. A token costs as many scores as the path is long, about log2 V.
"""

import dataclasses
import heapq

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays import rows
from zoo.arrays.types import Context, Key, Params, Tables
from zoo.errors import UserError
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.losses import softmax


def huffman_paths(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(inner nodes int32 [V, L], turns float32 [V, L]) of the Huffman tree of the counts.

    Turns are +1 and -1, and 0 beyond the end of a path. Words without occurrences count as half an
    occurrence; ties go to what was made first, so that the tree depends on the counts alone.
    """
    vocabulary = len(counts)
    heap = [(max(float(count), 0.5), word) for word, count in enumerate(counts)]
    heapq.heapify(heap)
    # Tree nodes: words are 0 .. V - 1, inner nodes V .. 2 V - 2 in the order of their making.
    parent, turn = np.zeros(2 * vocabulary - 1, np.int64), np.zeros(2 * vocabulary - 1, np.float32)
    for node in range(vocabulary, 2 * vocabulary - 1):
        (first_mass, first), (second_mass, second) = heapq.heappop(heap), heapq.heappop(heap)
        parent[first] = parent[second] = node
        turn[first], turn[second] = 1, -1
        heapq.heappush(heap, (first_mass + second_mass, node))
    return _paths(parent, turn, vocabulary)


def _paths(parent, turn, vocabulary):
    """(nodes, turns), both [V, L], of a tree: all words climb together, a level at a time."""
    root = len(parent) - 1
    lengths, climbers = np.zeros(vocabulary, np.int64), np.arange(vocabulary)
    words = np.arange(vocabulary if root else 0)
    while len(words):
        lengths[words] += 1
        climbers = parent[climbers]
        words, climbers = words[climbers != root], climbers[climbers != root]
    longest = lengths.max()
    nodes = np.zeros((vocabulary, longest), np.int32)
    turns = np.zeros((vocabulary, longest), np.float32)
    # A word that climbs from a leaf fills its row from the end of its path to the start.
    climbers = np.arange(vocabulary)
    for level in range(longest):
        words = np.flatnonzero(lengths > level)
        places = lengths[words] - 1 - level
        turns[words, places] = turn[climbers[words]]
        climbers[words] = parent[climbers[words]]
        nodes[words, places] = climbers[words] - vocabulary
    return nodes, turns


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
    laid_out_by_counts = True

    def tables(self, lexicon: Lexicon) -> Tables:
        """{"nodes" int32 [V, L], "turns" float32 [V, L]}: see huffman_paths."""
        nodes, turns = huffman_paths(lexicon.counts)
        return {"nodes": jnp.asarray(nodes), "turns": jnp.asarray(turns)}

    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """{"weights": [V - 1, D], "bias": [V - 1]}, a row an inner node."""
        if len(lexicon) < 2:
            raise UserError("a tree over words needs two of them, and the lexicon has fewer.")
        shape, scale = (len(lexicon) - 1, hidden_size), self.initial_scale
        weights = jax.random.uniform(key, shape, minval=-scale, maxval=scale)
        return {"weights": weights, "bias": jnp.zeros(len(lexicon) - 1)}

    def loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """-log p(targets | hidden), nats, [...]; exact."""
        nodes, turns = tables["nodes"][targets], tables["turns"][targets]
        scores = jnp.einsum(
            "...ld,...d->...l",
            rows.take(params["weights"], nodes),
            hidden,
            preferred_element_type=softmax.accumulator(hidden),
        )
        scores += rows.take(params["bias"], nodes)
        return jnp.where(turns == 0, 0, jax.nn.softplus(-turns * scores)).sum(-1)

    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
    ) -> tuple[jax.Array, jax.Array]:
        """(log p(targets | hidden), 0), nats, [...]: decisions need no normalisation."""
        log_prob = -self.loss(params, tables, hidden, targets)
        return log_prob, jnp.zeros_like(log_prob)

    def log_probs(
        self, params: Params, tables: Tables, hidden: jax.Array, *, context: Context = None
    ) -> jax.Array:
        """log p of every word, nats, [..., V]."""
        scores = softmax.logits(hidden, params["weights"], params["bias"])

        def step(total, level):
            nodes, turns = level
            turns = jnp.broadcast_to(turns, (*scores.shape[:-1], turns.size))
            of_level = jax.nn.log_sigmoid(turns * scores[..., nodes])
            return total + jnp.where(turns == 0, 0, of_level), None

        vocabulary = tables["nodes"].shape[0]
        total = jnp.zeros((*scores.shape[:-1], vocabulary), scores.dtype)
        return jax.lax.scan(step, total, (tables["nodes"].T, tables["turns"].T))[0]
