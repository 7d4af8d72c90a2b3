"""The methods of heads as modules, shared by zoo.interop.linen and zoo.interop.nnx."""

import abc
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from zoo import heads
from zoo.arrays.sharded_functions import NAMES
from zoo.arrays.types import Carry, Context, Key, Params, Prepared, Tables


class HeadOperations(abc.ABC):
    """The methods of a head without the arguments `params` and `tables`, which the module holds.

    Arguments, results and errors are the same as in `zoo.heads.Head`. All methods share the
    arguments

      hidden: h, [..., D].
      targets: x, int [...], each in [0, V).
      tied_weights: for a tied head, the table of the embedding that it shares; None for others.
      key: the key of a loss that draws noise words or masks.
      context: the context of the head's background or expert at each position: see `context_of`.
      prepared: the result of `prepared`, which is then computed once for many calls.
    """

    head: heads.Head
    dtype: Any

    @abc.abstractmethod
    def _arrays(self, hidden_size: int | None) -> tuple[Params, Tables]:
        """Returns the parameters and the tables that the module holds."""

    def _noise(self, key: Any) -> Key | None:
        """Returns the key of a loss that draws noise words or masks."""
        return key

    def _given(self, hidden, tied_weights) -> tuple[Params, Tables, jax.Array]:
        """Returns (params, tables, hidden), the first arguments of a head's methods."""
        params, tables = self._arrays(hidden.shape[-1])
        params = with_tied(self.head, params, tied_weights)
        return cast(params, self.dtype), tables, cast(hidden, self.dtype)

    def __call__(self, hidden, *, context: Context = None, tied_weights=None) -> jax.Array:
        """Computes log p of every word, nats, [..., V]; these are normalised logits."""
        return self.log_probs(hidden, context=context, tied_weights=tied_weights)

    def loss(
        self, hidden, targets, *, key: Any = None, context: Context = None, tied_weights=None
    ) -> jax.Array:
        """Computes the training loss of each token, nats, [...]."""
        given = self._given(hidden, tied_weights)
        return self.head.loss(*given, targets, key=self._noise(key), context=context)

    def weighted_loss(
        self,
        hidden,
        targets,
        token_weights,
        *,
        key: Any = None,
        context: Context = None,
        tied_weights=None,
    ) -> jax.Array:
        """Computes the sum of token_weights * loss, a scalar in nats, the objective of training.

        `token_weights` are [...] or broadcast to it, 0 for padding.
        """
        given = self._given(hidden, tied_weights)
        options: dict[str, Any] = {"key": self._noise(key), "context": context}
        return self.head.weighted_loss(*given, targets, token_weights, **options)

    def weighted_loss_and_penalty(
        self,
        hidden,
        targets,
        token_weights,
        *,
        key: Any = None,
        context: Context = None,
        tied_weights=None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes (weighted_loss, the part of it that the penalties add), scalars in nats."""
        given = self._given(hidden, tied_weights)
        options: dict[str, Any] = {"key": self._noise(key), "context": context}
        return self.head.weighted_loss_and_penalty(*given, targets, token_weights, **options)

    def log_prob(
        self,
        hidden,
        targets,
        *,
        context: Context = None,
        prepared: Prepared = None,
        tied_weights=None,
    ) -> jax.Array:
        """Computes log p(targets | hidden), nats, [...]; exact, whatever the loss is."""
        given = self._given(hidden, tied_weights)
        return self.head.log_prob(*given, targets, context=context, prepared=prepared)

    def log_prob_and_log_z(
        self,
        hidden,
        targets,
        *,
        context: Context = None,
        prepared: Prepared = None,
        tied_weights=None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes (log p(targets | hidden), log Z), nats, [...] each."""
        given = self._given(hidden, tied_weights)
        return self.head.log_prob_and_log_z(*given, targets, context=context, prepared=prepared)

    def log_probs(
        self, hidden, *, context: Context = None, prepared: Prepared = None, tied_weights=None
    ) -> jax.Array:
        """Computes log p of every word, nats, [..., V]."""
        given = self._given(hidden, tied_weights)
        return self.head.log_probs(*given, context=context, prepared=prepared)

    def sample(
        self, hidden, key, *, context: Context = None, prepared: Prepared = None, tied_weights=None
    ) -> jax.Array:
        """Draws words from p(. | hidden), int32 [...]."""
        given = self._given(hidden, tied_weights)
        return self.head.sample(*given, key, context=context, prepared=prepared)

    def top_k(
        self,
        hidden,
        k: int,
        *,
        context: Context = None,
        prepared: Prepared = None,
        tied_weights=None,
    ) -> tuple[jax.Array, jax.Array]:
        """Finds the k most probable words: (log-probabilities [..., k], words [..., k])."""
        given = self._given(hidden, tied_weights)
        return self.head.top_k(*given, k, context=context, prepared=prepared)

    def prepared(self, *, tied_weights=None) -> Prepared:
        """Computes the arrays that scoring would compute anew in every call, for `prepared=`."""
        params, tables = self._arrays(None)
        params = with_tied(self.head, params, tied_weights)
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
            give = "give hidden=" if background.reads_states else "leave hidden out"
            raise TypeError(f"the background is a {type(background).__name__}: {give}")
        states = {"hidden": hidden} if background.reads_states else {}
        _, tables = self._arrays(None)
        if carry is None:
            size = {"hidden_size": hidden.shape[-1]} if states else {}
            carry = background.initial_carry(words.shape[0], **size)
        return background.apply(tables["background"], words, carry, reset=reset, **states)


def with_tied(head: heads.Head, params: Params, tied_weights) -> Params:
    """Returns the parameters, with the shared table if the head is tied."""
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

    def of_array(array):
        is_floating = jnp.issubdtype(jnp.result_type(array), jnp.floating)
        return jnp.asarray(array, dtype) if is_floating else array

    return jax.tree.map(of_array, tree)


def renamed(names: tuple[Any, ...], axes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the user's names for Zoo's names of axes."""
    for name in axes:
        if name not in NAMES:
            raise ValueError(f"axes has {name!r}: give names for {', '.join(NAMES)}")
    return tuple(None if name is None else axes.get(name) for name in names)
