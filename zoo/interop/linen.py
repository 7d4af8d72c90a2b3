"""Heads, embeddings and cores as modules of flax.linen.

Parameters are in the collection "params". The components' tables of the words are in the collection
"tables", which is not trained. `init` returns both, and `apply` needs both.

    variables = model.init(key, ...)
    loss = model.apply({"params": params, "tables": variables["tables"]}, ...)

With `axes`, names for some of "words", "features", "hidden" and "vector", as {"words": "vocab"},
parameters carry the names of their axes as `nn.LogicallyPartitioned`, for `nn.get_partition_spec`
and `nn.logical_axis_rules`. `dtype` is the type to which inputs and parameters are cast for the
component, None for no cast; `param_dtype` is the type of the parameters, None for float32.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from zoo import cores, embeddings, heads
from zoo.base import lazy
from zoo.base.arrays.types import Carry, Params, Tables
from zoo.interop.operations import HeadOperations, cast, rename_axes
from zoo.lexicon import Lexicon

with lazy.extra():
    import flax.linen as nn

TABLES = "tables"


class Head(nn.Module, HeadOperations):
    """A head as a module: `Head(heads.LogLinear(), lexicon)(hidden)`, or any of its methods.

    The first hidden states set the sizes of the parameters. A loss that draws noise words or
    masks takes its key from the argument `key` or from the stream "noise" of `rngs`.

    Example:
      >>> from zoo.interop import linen
      >>> head = linen.Head(heads.Softmax(), lexicon)
      >>> variables = head.init(jax.random.key(0), hidden)
      >>> head.apply(variables, hidden, targets, method=head.loss).shape
      (2,)
    """

    head: heads.Head
    lexicon: Lexicon
    axes: Mapping[str, Any] | None = None
    dtype: Any = None
    param_dtype: Any = None

    @nn.compact
    def _arrays(self, hidden_size: int | None) -> tuple[Params, Tables]:
        def init(key):
            assert hidden_size is not None
            return self.head.init(key, hidden_size, self.lexicon)

        params = _parameters(self, init, self.head.partition(self.lexicon), hidden_size is not None)
        return params, _tables(self, lambda: self.head.tables(self.lexicon))

    def _noise(self, key: Any) -> Any:
        if key is None and (self.has_rng("noise") or self.is_initializing()):
            return self.make_rng("noise")
        return key


class Embedding(nn.Module):
    """An embedding as a module: `Embedding(embeddings.Lookup(64), lexicon)(words)`.

    Example:
      >>> from zoo.interop import linen
      >>> embedding = linen.Embedding(embeddings.Lookup(size=5), lexicon)
      >>> variables = embedding.init(jax.random.key(0), targets)
      >>> embedding.apply(variables, targets).shape
      (2, 5)
    """

    embedding: embeddings.Embedding
    lexicon: Lexicon
    axes: Mapping[str, Any] | None = None
    dtype: Any = None
    param_dtype: Any = None

    @nn.compact
    def _arrays(self) -> tuple[Params, Tables]:
        def init(key):
            return self.embedding.init(key, self.lexicon)

        params = _parameters(self, init, self.embedding.partition(self.lexicon), True)
        return params, _tables(self, lambda: self.embedding.tables(self.lexicon))

    def __call__(self, words) -> jax.Array:
        """Returns the vectors of words, [..., E]."""
        params, tables = self._arrays()
        return self.embedding.apply(cast(params, self.dtype), tables, words)

    def tied_weights(self) -> jax.Array:
        """Returns the embedding's table, to pass to a tied head as `tied_weights`."""
        return self._arrays()[0]["table"]


class Core(nn.Module):
    """A core as a module: `hidden, carry = Core(cores.LSTM(64))(inputs)`.

    Dropout takes its key from the stream "dropout" of `rngs`; without the stream, it is off.

    Example:
      >>> from zoo.interop import linen
      >>> core = linen.Core(cores.GRU(size=3))
      >>> inputs = jnp.ones((2, 5, 4))  # two rows of five vectors
      >>> variables = core.init(jax.random.key(0), inputs)
      >>> states, carry = core.apply(variables, inputs)
      >>> states.shape
      (2, 5, 3)
    """

    core: cores.Core
    dtype: Any = None
    param_dtype: Any = None
    axes = None

    @nn.compact
    def __call__(
        self, inputs, carry: Carry = None, *, reset=None, deterministic: bool = False
    ) -> tuple[jax.Array, Carry]:
        """Runs the core over a batch of sequences."""
        inputs = cast(inputs, self.dtype)
        shapes = jax.eval_shape(lambda: self.core.init(jax.random.key(0), inputs.shape[-1]))

        def init(key):
            return self.core.init(key, inputs.shape[-1])

        params = cast(_parameters(self, init, shapes, True), self.dtype)
        carry = self.core.initial_carry(inputs.shape[0]) if carry is None else carry
        has_key = self.has_rng("dropout") and not deterministic
        key = self.make_rng("dropout") if has_key else None
        return self.core.apply(params, inputs, carry, reset=reset, key=key)


def _parameters(module: Any, init: Callable, partition: Any, is_sized: bool) -> Any:
    """Returns a module's parameters of the collection "params"; makes them if there are none."""
    names = list(partition) if isinstance(partition, dict) else [*map(str, range(len(partition)))]
    initial: Any = {}
    # A tied softmax without bias has no parameters of its own.
    has_all = all(module.has_variable("params", name) for name in names)
    if not is_sized and not has_all and module.is_initializing():
        return {}  # a method that needs tables alone, called before there are hidden states
    if module.is_mutable_collection("params") and not has_all:
        values = cast(init(module.make_rng("params")), module.param_dtype)
        if module.axes is not None:
            values = jax.tree.map(
                lambda array, axis_names: _box(array, axis_names, module.axes), values, partition
            )
        initial = values if isinstance(values, dict) else dict(zip(names, values, strict=True))
    arrays = [
        module.variable("params", name, lambda name=name: initial[name]).value for name in names
    ]
    params = dict(zip(names, arrays, strict=True)) if isinstance(partition, dict) else tuple(arrays)
    if is_sized:
        _check_shapes(module, params, jax.eval_shape(lambda: init(jax.random.key(0))))
    return params


def _box(array, names, axes):
    return nn.LogicallyPartitioned(array, names=rename_axes(tuple(names), axes))


def _check_shapes(module, params, expected_shapes):

    def check(path, array, expected):
        if array.shape != expected.shape:
            name = "/".join((*module.path, jax.tree_util.keystr(path, simple=True, separator="/")))
            raise ValueError(
                f"the parameter {name} has the shape {array.shape}, and these inputs need "
                f"{expected.shape}: give the inputs that it was made for, or call `init` again"
            )

    jax.tree.map_with_path(check, params, expected_shapes)


def _tables(module: Any, make: Callable) -> Tables:
    """Returns the component's tables of the collection "tables"; makes them in `init`."""
    if module.has_variable(TABLES, "arrays"):
        return module.variable(TABLES, "arrays").value
    tables = make()
    if not jax.tree.leaves(tables):
        return tables
    if not module.is_mutable_collection(TABLES):
        name = "/".join(module.path) or type(module).__name__
        raise ValueError(
            f"the module {name} needs the collection 'tables', which `init` gave beside 'params': "
            "apply({'params': params, 'tables': variables['tables']}, ...)"
        )
    return module.variable(TABLES, "arrays", lambda: tables).value
