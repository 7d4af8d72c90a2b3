"""The contract of a head: from a hidden state to a distribution over words."""

import jax.numpy as jnp


class Head:
    """What every head offers. Subclasses are frozen dataclasses; methods are pure functions.

    Shapes: hidden [..., D], targets and words int32 [...], losses and log-probabilities [...] in
    nats per token. `tables` is what `Lexicon.tables` gives; `context` is what a prior needs to know
    beyond the hidden state.

        init(key, hidden_size, lexicon) -> params
        loss(params, tables, hidden, targets, *, key=None, context=None) -> [...]
        weighted_loss(params, tables, hidden, targets, token_weights, ...) -> a scalar
        log_prob(params, tables, hidden, targets, *, context=None) -> [...]      exact, normalised
        log_probs(params, tables, hidden, *, context=None) -> [..., V]           closed heads
        sample(params, tables, hidden, key, *, context=None) -> [...]
        top_k(params, tables, hidden, k, *, context=None) -> (log_probs [..., k], words [..., k])

    `loss` is what is trained and may be sampled; `log_prob` is what is reported.
    """

    # Whether the output weights are the embedding's table, handed in as params["weights"].
    tied: bool = False

    def weighted_loss(
        self, params, tables, hidden, targets, token_weights, *, key=None, context=None
    ):
        """sum of token_weights * loss, a scalar in nats; a head may have a faster way to it."""
        losses = self.loss(params, tables, hidden, targets, key=key, context=context)
        return jnp.sum(jnp.where(token_weights == 0, 0, token_weights * losses))
