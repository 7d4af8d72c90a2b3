"""Softmax losses over signatures whose scores are a sparse product of the adaptor.

Where words have many features each (letter n-grams), there are about as many signatures as words,
and a weight vector a signature, sum_f phi_sf W_f, would cost more to form than a softmax's product.
The scores of N tokens are formed from their adaptors instead,

    o = phi A^T + log B,    A = H W^T + c,  [N, F],

some tokens at a time: a product with F columns, F much less than S, and a sum of as many rows as
signatures have features. phi stays sparse, forward and backward (see zoo.arrays.sparse).
"""

import jax
import jax.numpy as jnp

from zoo.arrays import blocks, sparse
from zoo.losses import softmax
from zoo.losses.token_weights import slopes_of_weights, weighted_sum

# Scores of this many tokens, 64 floats, are what a gather reads at a time; fewer where scores of
# all signatures would not stay in cache, but no fewer than 16.
MOST_TOKENS, LEAST_TOKENS = 64, 16


def token_block(tokens: int, signatures: int) -> int:
    """Tokens to take at a time."""
    most = max(LEAST_TOKENS, min(MOST_TOKENS, softmax.LOGITS_AT_A_TIME // signatures))
    return blocks.even(tokens, most)


def scores(tables, weights, bias, hidden):
    """o of hidden [N, D], weights [F, D] and bias [F]: [S, N], a token a column."""
    adaptors = softmax.logits(hidden, weights, bias).T
    products = sparse.product(tables["of_signature"], tables["of_feature"], adaptors)
    return products + tables["log_mass"].astype(products.dtype)[:, None]


def softmax_loss(tables, weights, bias, hidden, signatures):
    """(log Z - o_s [...], log Z [...]) in nats, of hidden [..., D] and signatures [...].

    Memory beyond arguments and results: O(S) scores of `token_block` tokens, forward and backward.
    """

    # Recomputed in the backward pass, block by block, rather than kept for all tokens.
    @jax.checkpoint
    def of_block(columns):
        block_hidden, block_signatures = columns
        block_scores = scores(tables, weights, bias, block_hidden)
        log_z = jax.nn.logsumexp(block_scores, axis=0)
        return log_z - jnp.take_along_axis(block_scores, block_signatures[None], axis=0)[0], log_z

    shape = signatures.shape
    hidden, signatures = hidden.reshape(-1, hidden.shape[-1]), signatures.reshape(-1)
    block = token_block(len(signatures), len(tables["log_mass"]))
    loss, log_z = blocks.map_rows(of_block, (hidden, signatures), block)
    return loss.reshape(shape), log_z.reshape(shape)


def summed_softmax_loss(tables, weights, bias, hidden, signatures, token_weights):
    """sum of token_weights [...] * (log Z - o_s), a scalar in nats; signatures [...] are the s.

    Gradients, of weights, bias, hidden [..., D] and token weights, are formed in the forward pass.
    """
    hidden = hidden.reshape(-1, hidden.shape[-1])
    signatures, token_weights = signatures.reshape(-1), token_weights.reshape(-1)
    return _summed(tables, weights, bias, hidden, signatures, token_weights)


@jax.custom_vjp
def _summed(tables, weights, bias, hidden, signatures, token_weights):
    losses, _ = softmax_loss(tables, weights, bias, hidden, signatures)
    return weighted_sum(losses, token_weights)


def _summed_forward(tables, weights, bias, hidden, signatures, token_weights):
    def step(carry, columns):
        total, weights_gradient, bias_gradient = carry
        h, s, u = columns
        block_scores = scores(tables, weights, bias, h)
        largest = block_scores.max(axis=0)
        exponentials = jnp.exp(block_scores - largest[None])
        z = exponentials.sum(axis=0)
        of_targets = jnp.take_along_axis(block_scores, s[None], axis=0)[0]
        losses = largest + jnp.log(z) - of_targets
        total += weighted_sum(losses, u)
        expected = exponentials * (u / z)[None]
        difference = expected.at[s, jnp.arange(len(s))].add(-u.astype(expected.dtype))
        difference = jnp.where(u[None] == 0, 0, difference)  # as weighted_rows, a token a column
        of_adaptors = sparse.product(tables["of_feature"], tables["of_signature"], difference)
        of_hidden, of_weights = softmax.products_with(of_adaptors.T, h, weights)
        carry = (
            total,
            weights_gradient + of_weights.astype(weights_gradient.dtype),
            bias_gradient + of_adaptors.sum(axis=1).astype(bias_gradient.dtype),
        )
        return carry, (of_hidden.astype(h.dtype), slopes_of_weights(losses, u))

    block = token_block(len(signatures), len(tables["log_mass"]))
    columns = blocks.of_rows((hidden, signatures, token_weights), block)
    zero = jnp.zeros((), softmax.accumulator(hidden))
    initial = (zero, *(jnp.zeros(x.shape, softmax.accumulator(x)) for x in (weights, bias)))
    (total, of_weights, of_bias), of_tokens = jax.lax.scan(step, initial, columns)
    of_tokens = (x.reshape(-1, *x.shape[2:])[: len(hidden)] for x in of_tokens)
    return total, (of_weights.astype(weights.dtype), of_bias.astype(bias.dtype), *of_tokens)


def _summed_backward(gradients, cotangent):
    *of_arrays, of_token_weights = ((g * cotangent).astype(g.dtype) for g in gradients)
    return None, *of_arrays, None, of_token_weights


_summed.defvjp(_summed_forward, _summed_backward)


def log_probs(tables, weights, bias, hidden):
    """log p of each signature, nats, [..., S], of hidden [..., D]."""

    def of_block(columns):
        return jax.nn.log_softmax(scores(tables, weights, bias, *columns), axis=0).T

    rows = hidden.reshape(-1, hidden.shape[-1])
    block = token_block(len(rows), len(tables["log_mass"]))
    return blocks.map_rows(of_block, (rows,), block).reshape(*hidden.shape[:-1], -1)
