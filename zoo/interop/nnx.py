"""Heads, embeddings and cores as modules of flax.nnx.

Parameters are `nnx.Param`. The components' tables of the words are `Table`, which is not trained:
`nnx.grad` and `nnx.Optimizer(..., wrt=nnx.Param)` leave it unchanged.

With `axes`, names for some of "words", "features", "hidden" and "vector", parameters have names of
their axes as `out_sharding`, for `nnx.get_partition_spec`. In the context of a mesh, see
`jax.set_mesh`, they are also sharded by these names.
"""

from collections.abc import Mapping
from typing import Any

import jax

from zoo import cores, embeddings, heads
from zoo.base import lazy
from zoo.base.arrays.types import Carry, Params, Tables
from zoo.interop.operations import HeadOperations, cast, rename_axes
from zoo.lexicon import Lexicon

with lazy.extra():
    from flax import nnx


class Table(nnx.Variable):
    """A component's table of the words, which is not trained.

    Example:
      >>> from flax import nnx
      >>> from zoo.interop import nnx as modules
      >>> head = modules.Head(heads.NCE(samples=2), 4, lexicon, rngs=nnx.Rngs(0))
      >>> len(jax.tree.leaves(nnx.state(head, modules.Table))) > 0
      True
    """


class Head(HeadOperations, nnx.Module):
    """A head as a module: `Head(heads.LogLinear(), 64, lexicon, rngs=rngs)(hidden)`.

    The argument `key` of a loss that draws noise words or masks is a key, or an `nnx.Rngs` with the
    stream "noise".

    Example:
      >>> from flax import nnx
      >>> from zoo.interop import nnx as modules
      >>> head = modules.Head(heads.Softmax(), 4, lexicon, rngs=nnx.Rngs(0))
      >>> head.loss(hidden, targets).shape, head(hidden).shape
      ((2,), (2, 3))
    """

    def __init__(
        self,
        head: heads.Head,
        hidden_size: int,
        lexicon: Lexicon,
        *,
        rngs: nnx.Rngs,
        axes: Mapping[str, Any] | None = None,
        dtype: Any = None,
        param_dtype: Any = None,
    ):
        self.head, self.dtype = head, dtype
        params = cast(head.init(rngs.params(), hidden_size, lexicon), param_dtype)
        self.params = nnx.data(_parameters(params, head.partition(lexicon), axes))
        self.tables = nnx.data(jax.tree.map(Table, head.tables(lexicon)))

    def _arrays(self, hidden_size: int | None) -> tuple[Params, Tables]:
        return _values(self.params), _values(self.tables)

    def _noise(self, key: Any) -> Any:
        return key.noise() if isinstance(key, nnx.Rngs) else key


class Embedding(nnx.Module):
    """An embedding as a module: `Embedding(embeddings.Lookup(64), lexicon, rngs=rngs)(words)`.

    Example:
      >>> from flax import nnx
      >>> from zoo.interop import nnx as modules
      >>> embedding = modules.Embedding(embeddings.Lookup(size=5), lexicon, rngs=nnx.Rngs(0))
      >>> embedding(targets).shape
      (2, 5)
    """

    def __init__(
        self,
        embedding: embeddings.Embedding,
        lexicon: Lexicon,
        *,
        rngs: nnx.Rngs,
        axes: Mapping[str, Any] | None = None,
        dtype: Any = None,
        param_dtype: Any = None,
    ):
        self.embedding, self.dtype = embedding, dtype
        params = cast(embedding.init(rngs.params(), lexicon), param_dtype)
        self.params = nnx.data(_parameters(params, embedding.partition(lexicon), axes))
        self.tables = nnx.data(jax.tree.map(Table, embedding.tables(lexicon)))

    def __call__(self, words) -> jax.Array:
        """Returns the vectors of words, [..., E]."""
        params = cast(_values(self.params), self.dtype)
        return self.embedding.apply(params, _values(self.tables), words)

    def tied_weights(self) -> jax.Array:
        """Returns the embedding's table, to pass to a tied head as `tied_weights`."""
        return self.params["table"][...]


class Core(nnx.Module):
    """A core as a module: `hidden, carry = Core(cores.LSTM(64), 64, rngs=rngs)(inputs)`.

    Example:
      >>> from flax import nnx
      >>> from zoo.interop import nnx as modules
      >>> core = modules.Core(cores.GRU(size=3), 4, rngs=nnx.Rngs(0))
      >>> states, carry = core(jnp.ones((2, 5, 4)))  # two rows of five vectors
      >>> states.shape
      (2, 5, 3)
    """

    def __init__(
        self,
        core: cores.Core,
        input_size: int,
        *,
        rngs: nnx.Rngs,
        dtype: Any = None,
        param_dtype: Any = None,
    ):
        self.core, self.dtype = core, dtype
        params = cast(core.init(rngs.params(), input_size), param_dtype)
        self.params = nnx.data(jax.tree.map(nnx.Param, params))

    def __call__(
        self, inputs, carry: Carry = None, *, reset=None, key: Any = None
    ) -> tuple[jax.Array, Carry]:
        """Runs the core over a batch of sequences."""
        inputs = cast(inputs, self.dtype)
        key = key.dropout() if isinstance(key, nnx.Rngs) else key
        carry = self.core.initial_carry(inputs.shape[0]) if carry is None else carry
        params = cast(_values(self.params), self.dtype)
        return self.core.apply(params, inputs, carry, reset=reset, key=key)


def _parameters(params: Any, partition: Any, axes: Mapping[str, Any] | None) -> Any:
    """Wraps each array in an nnx.Param, with the names of its axes if `axes` is given."""
    if axes is None:
        return jax.tree.map(nnx.Param, params)
    # Flax shards variables with names when they are made, and needs a mesh for it.
    has_mesh = not jax.sharding.get_abstract_mesh().empty

    def make_param(array, names):
        axis_names = rename_axes(tuple(names), axes)
        return nnx.Param(array, out_sharding=axis_names, eager_sharding=has_mesh)

    return jax.tree.map(make_param, params, partition)


def _values(tree: Any) -> Any:
    return jax.tree.map(
        lambda variable: variable.get_value(), tree, is_leaf=lambda x: isinstance(x, nnx.Variable)
    )
