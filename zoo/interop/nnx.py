"""Heads, embeddings and cores as modules of flax.nnx.

Parameters are `nnx.Param`, what is known of the words `Table`, which is not trained: `nnx.grad`
and `nnx.Optimizer(..., wrt=nnx.Param)` leave it alone.

With `axes`, a name for each of "words", "features" and "hidden", parameters carry the names of
their axes as `out_sharding`, for `nnx.get_partition_spec`; where a mesh is in context, as
`jax.set_mesh` puts it, they are laid out by them.
"""

from collections.abc import Mapping
from typing import Any

import jax

from zoo import cores, embeddings, heads, lazy
from zoo.arrays.types import Carry, Params, Tables
from zoo.interop.operations import HeadOperations, cast, renamed
from zoo.lexicon import Lexicon

with lazy.extra():
    from flax import nnx


class Table(nnx.Variable):
    """An array that a component needs to know of the words; it is not trained.

    Example:
      >>> from flax import nnx
      >>> from zoo.interop import nnx as modules
      >>> head = modules.Head(heads.NCE(samples=2), 4, lexicon, rngs=nnx.Rngs(0))
      >>> len(jax.tree.leaves(nnx.state(head, modules.Table))) > 0
      True
    """


class Head(HeadOperations, nnx.Module):
    """A head as a module: `Head(heads.LogLinear(), 64, lexicon, rngs=rngs)(hidden)`.

    The key of a loss that draws noise words may be a key, or `nnx.Rngs`, whose stream "noise" gives
    one.

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
        """Makes the parameters, by the stream "params".

        Args:
          head: from zoo.heads.
          hidden_size: D.
          lexicon: the words.
          rngs: whose stream "params" gives the key.
          axes: names for the axes of the parameters, {"words": "model"}; None for none.
          dtype: in which hidden states and parameters are handed to the head; None for their own.
          param_dtype: of the parameters; None for that of `head.init`, float32.
        """
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
        """Makes the parameters, by the stream "params".

        Args:
          embedding: from zoo.embeddings.
          lexicon: the words.
          rngs: whose stream "params" gives the key.
          axes: names for the axes of the parameters, {"words": "model"}; None for none.
          dtype: in which parameters are handed to the embedding; None for their own.
          param_dtype: of the parameters; None for float32.
        """
        self.embedding, self.dtype = embedding, dtype
        params = cast(embedding.init(rngs.params(), lexicon), param_dtype)
        self.params = nnx.data(_parameters(params, embedding.partition(lexicon), axes))
        self.tables = nnx.data(jax.tree.map(Table, embedding.tables(lexicon)))

    def __call__(self, words) -> jax.Array:
        """The vectors of words int32 [...], [..., E]."""
        params = cast(_values(self.params), self.dtype)
        return self.embedding.apply(params, _values(self.tables), words)

    def tied_weights(self) -> jax.Array:
        """The table that a tied head shares: its `tied_weights`."""
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
        """Makes the parameters, by the stream "params".

        Args:
          core: from zoo.cores.
          input_size: E.
          rngs: whose stream "params" gives the key.
          dtype: in which inputs and parameters are handed to the core; None for their own.
          param_dtype: of the parameters; None for float32.
        """
        self.core, self.dtype = core, dtype
        params = cast(core.init(rngs.params(), input_size), param_dtype)
        self.params = nnx.data(jax.tree.map(nnx.Param, params))

    def __call__(
        self, inputs, carry: Carry = None, *, reset=None, key: Any = None
    ) -> tuple[jax.Array, Carry]:
        """(hidden [B, T, D], carry) of inputs [B, T, E]; a carry of None is the initial one.

        Args:
          key: turns dropout on: a key, or `nnx.Rngs`, whose stream "dropout" gives one.
        """
        inputs = cast(inputs, self.dtype)
        key = key.dropout() if isinstance(key, nnx.Rngs) else key
        carry = self.core.initial_carry(inputs.shape[0]) if carry is None else carry
        params = cast(_values(self.params), self.dtype)
        return self.core.apply(params, inputs, carry, reset=reset, key=key)


def _parameters(params: Any, partition: Any, axes: Mapping[str, Any] | None) -> Any:
    """Each array as an nnx.Param, with the names of its axes if there are `axes`."""
    if axes is None:
        return jax.tree.map(nnx.Param, params)
    # Flax lays variables with names out as they are made, and has to know a mesh for it.
    has_mesh = not jax.sharding.get_abstract_mesh().empty

    def of_array(array, names):
        named = renamed(tuple(names), axes)
        return nnx.Param(array, out_sharding=named, eager_sharding=has_mesh)

    return jax.tree.map(of_array, params, partition)


def _values(tree: Any) -> Any:
    def is_variable(x):
        return isinstance(x, nnx.Variable)

    return jax.tree.map(lambda variable: variable[...], tree, is_leaf=is_variable)
