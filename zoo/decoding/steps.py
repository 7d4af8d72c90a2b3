"""Step functions: what all decoders take, and those of models.

A step function says what comes next, and is all that a decoder knows of a model:

    step(words int32 [rows], carry) -> (log_probs [rows, V] in nats, carry)

Every leaf of the carry is [rows, ...]; decoders repeat, reorder and drop its rows. A search over
B sentences with K hypotheses each has rows = B * K, row b * K + k being hypothesis k of sentence b.
What is constant for a sentence, such as the states that an attention reads, need not be carried: a
step that holds arrays [B, ...] itself finds K = rows // B.

Give it as `jax.tree_util.Partial(function, params, tables)`: the arrays then are arguments of the
compiled loop. Those that a plain closure holds become constants of the program.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

Step = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


def as_tree(step: Step) -> jax.tree_util.Partial:
    """The step as an argument of compiled functions."""
    return step if isinstance(step, jax.tree_util.Partial) else jax.tree_util.Partial(step)


@dataclasses.dataclass(frozen=True)
class _NextWord:
    """Equal for equal models, so that a decoder is compiled once for all steps of a model."""

    model: Any

    def __call__(self, params, tables, prepared, words, carry):
        states = self.model.states(params, tables, words[:, None], carry)
        hidden, context = jax.tree.map(lambda leaf: leaf[:, 0], states[:2])
        head, head_params = self.model.head, self.model.head_params(params)
        log_probs = head.log_probs(
            head_params, tables["head"], hidden, context=context, prepared=prepared
        )
        return log_probs, states[2]


def of_language_model(model, params, tables) -> jax.tree_util.Partial:
    """step(words int32 [B], carry) -> (log_probs [B, V] in nats, carry) of a `LanguageModel`."""
    prepared = model.prepared(params, tables)
    return jax.tree_util.Partial(_NextWord(model), params, tables, prepared)
