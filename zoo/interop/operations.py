"""The methods of heads as modules, shared by zoo.interop.linen and zoo.interop.nnx."""

import abc
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from zoo import heads
from zoo.base.arrays.parameter_sharding import NAMES
from zoo.base.arrays.types import Carry, Context, Key, Params, Prepared, Tables
from zoo.losses import Statistics, TokenReport


class HeadOperations(abc.ABC):
    """The methods of a head without the arguments `params` and `tables`, which the module holds.

    Arguments, results and errors are the same as in `zoo.heads.Head`. All methods share the
    arguments

      hidden: h, [..., D].
      targets: x, int [...], each in [0, V).
      key: the key of a loss that draws noise words or masks.

    and the options

      tied_weights: for a tied head, the table of the embedding that it shares; None for others.
      context: the context of the head's background or expert at each position: see `context_of`.
      prepared: the result of `prepared`, which is then computed once for many calls of the methods
        that score or sample.
      temperature: of `log_prob`, `statistics` and `sample`.
    """

    head: heads.Head
    dtype: Any

    @abc.abstractmethod
    def _arrays(self, hidden_size: int | None) -> tuple[Params, Tables]:
        """Returns the parameters and the tables that the module holds."""

    def _noise(self, key: Any) -> Key | None:
        """Returns the key of a loss that draws noise words or masks."""
        return key

    def _call(self, method, hidden, *arguments, tied_weights=None, **options):
        """Calls a method of the head; its options are the head's, and `tied_weights`."""
        params, tables = self._arrays(hidden.shape[-1])
        params = add_tied_weights(self.head, params, tied_weights)
        head_inputs = cast(params, self.dtype), tables, cast(hidden, self.dtype)
        return getattr(self.head, method)(*head_inputs, *arguments, **options)

    def __call__(self, hidden, **options: Any) -> jax.Array:
        """Computes log p of every word, nats, [..., V]; these are normalised logits."""
        return self.log_probs(hidden, **options)

    def loss(self, hidden, targets, *, key: Any = None, **options: Any) -> jax.Array:
        """Computes the training loss of each token, nats, [...]."""
        return self._call("loss", hidden, targets, key=self._noise(key), **options)

    def weighted_loss(
        self, hidden, targets, token_weights, *, key: Any = None, **options: Any
    ) -> jax.Array:
        """Computes the sum of token_weights * loss, nats, the objective of training; weights are
        [...] or broadcast to it, 0 for padding."""
        arguments = hidden, targets, token_weights
        return self._call("weighted_loss", *arguments, key=self._noise(key), **options)

    def weighted_loss_and_report(
        self, hidden, targets, token_weights, *, key: Any = None, **options: Any
    ) -> tuple[jax.Array, TokenReport]:
        """Computes (weighted_loss, the log p, log Z and best word of each token)."""
        arguments = hidden, targets, token_weights
        return self._call("weighted_loss_and_report", *arguments, key=self._noise(key), **options)

    def weighted_loss_and_penalty(
        self, hidden, targets, token_weights, *, key: Any = None, **options: Any
    ) -> tuple[jax.Array, jax.Array]:
        """Computes (weighted_loss, the part of it that the penalties add), scalars in nats."""
        arguments = hidden, targets, token_weights
        return self._call("weighted_loss_and_penalty", *arguments, key=self._noise(key), **options)

    def log_prob(self, hidden, targets, **options: Any) -> jax.Array:
        """Computes log p(targets | hidden), nats, [...]; exact, whatever the loss is."""
        return self._call("log_prob", hidden, targets, **options)

    def log_prob_and_log_z(self, hidden, targets, **options: Any) -> tuple[jax.Array, jax.Array]:
        """Computes (log p(targets | hidden), log Z), nats, [...] each."""
        return self._call("log_prob_and_log_z", hidden, targets, **options)

    def statistics(self, hidden, targets, **options: Any) -> Statistics:
        """Computes log p(targets | hidden), the entropy, and whether targets are the best words."""
        return self._call("statistics", hidden, targets, **options)

    def word_log_probs(self, hidden, words, **options: Any) -> jax.Array:
        """Computes log p of K words of each token, int [..., K], nats, [..., K]."""
        return self._call("word_log_probs", hidden, words, **options)

    def log_probs(self, hidden, **options: Any) -> jax.Array:
        """Computes log p of every word, nats, [..., V]."""
        return self._call("log_probs", hidden, **options)

    def sample(self, hidden, key, **options: Any) -> jax.Array:
        """Draws words from p(. | hidden), int32 [...]."""
        return self._call("sample", hidden, key, **options)

    def top_k(self, hidden, k: int, **options: Any) -> tuple[jax.Array, jax.Array]:
        """Finds the k most probable words: (log-probabilities [..., k], words [..., k])."""
        return self._call("top_k", hidden, k, **options)

    def prepared(self, *, tied_weights=None) -> Prepared:
        """Computes the arrays that scoring would compute anew in every call, for `prepared=`."""
        params, tables = self._arrays(None)
        params = add_tied_weights(self.head, params, tied_weights)
        return self.head.prepared(cast(params, self.dtype), tables)

    def context_of(
        self, words, carry: Carry = None, *, reset=None, hidden=None
    ) -> tuple[Context, Carry]:
        """Runs the head's background or expert over words."""
        background = self.head.background
        if background is None:
            raise TypeError(
                f"this {type(self.head).__name__} has no background and needs no context"
            )
        if background.reads_states != (hidden is not None):
            remedy = "give hidden=" if background.reads_states else "leave hidden out"
            raise TypeError(f"the background is a {type(background).__name__}: {remedy}")
        options = {"hidden": hidden} if background.reads_states else {}
        _, tables = self._arrays(None)
        if carry is None:
            carry_options = {"hidden_size": hidden.shape[-1]} if options else {}
            carry = background.initial_carry(words.shape[0], **carry_options)
        return background.apply(tables["background"], words, carry, reset=reset, **options)


def add_tied_weights(head: heads.Head, params: Params, tied_weights) -> Params:
    name = type(head).__name__
    if head.tied == (tied_weights is not None):
        return {**params, "weights": tied_weights} if head.tied else params
    if head.tied:
        raise TypeError(
            f"a {name}(tied=True) shares the embedding's table: give it as tied_weights="
        )
    raise TypeError(f"this {name} has weights of its own and takes no tied_weights")


def cast(tree: Any, dtype: Any) -> Any:
    """Casts the floating-point arrays of a tree."""
    if dtype is None:
        return tree

    def cast_array(array):
        is_floating = jnp.issubdtype(jnp.result_type(array), jnp.floating)
        return jnp.asarray(array, dtype) if is_floating else array

    return jax.tree.map(cast_array, tree)


def rename_axes(names: tuple[Any, ...], axes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the user's names for Zoo's names of axes."""
    for name in axes:
        if name not in NAMES:
            raise ValueError(f"axes has {name!r}: give names for {', '.join(NAMES)}")
    return tuple(None if name is None else axes.get(name) for name in names)
