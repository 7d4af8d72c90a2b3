"""Step functions of models, in the form that decoders take."""

import dataclasses
from typing import Any

import jax


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
