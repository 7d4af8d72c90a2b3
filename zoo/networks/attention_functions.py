"""Attention: functions of hidden states, a memory and parameters.

For a hidden state h, the vectors m_1 ... m_S of a memory and a score s(h, m),

    a_i = exp s(h, m_i) / sum_j exp s(h, m_j),    c = sum_i a_i m_i

over the positions i of the memory that are not masked. Masked positions have weight 0; if all are
masked, all weights and c are 0. Scores after Luong, Pham and Manning (2015), equation 8, and
Bahdanau, Cho and Bengio (2015), appendix A.1.2.

Hidden states are [B, T, D] and the memory is [B, S, M], shared by all T: positions in time, or the
K hypotheses of a sentence, T = K. So a memory is never repeated.
"""

import jax
import jax.numpy as jnp

from zoo.arrays import products
from zoo.arrays.types import accumulator


def bilinear_scores(hidden: jax.Array, keys: jax.Array) -> jax.Array:
    """Computes s(h, m) = h . k, Luong's "general" score for k = W m, in at least float32.

    Gives scores [B, T, S].
    """
    return products.einsum("btd,bsd->bts", hidden, keys)


@jax.custom_vjp
def additive_scores(queries: jax.Array, keys: jax.Array, vector: jax.Array) -> jax.Array:
    """Computes s(h, m) = v . tanh(q + k), Bahdanau's score for q = W h and k = U m.

    It is computed in at least float32. Of the [B, T, S, A] activations, at most [B, S, A] are held
    at a time; the backward pass recomputes them in the same way.

    Gives scores [B, T, S].
    """

    def scores(query):
        return products.matmul(jnp.tanh(query[:, None] + keys), vector)

    if queries.shape[1] == 1:
        return scores(queries[:, 0])[:, None]
    return jnp.swapaxes(jax.lax.map(scores, jnp.swapaxes(queries, 0, 1)), 0, 1)


def _additive_forward(queries, keys, vector):
    return additive_scores(queries, keys, vector), (queries, keys, vector)


def _additive_backward(residuals, cotangent):
    queries, keys, vector = residuals
    wide = accumulator(queries)

    def step(sums, inputs):
        query, scores_gradient = inputs
        activated = jnp.tanh(query[:, None] + keys).astype(wide)
        weighted = scores_gradient[:, :, None]
        inside = weighted * (1 - activated * activated)
        of_vector = jnp.einsum("bs,bsa->a", scores_gradient, activated)
        query_gradient = inside.sum(1) * vector[None]
        return (sums[0] + inside, sums[1] + of_vector), query_gradient

    sums = jnp.zeros(keys.shape, wide), jnp.zeros(vector.shape, wide)
    (of_keys, of_vector), of_queries = jax.lax.scan(
        step, sums, (jnp.swapaxes(queries, 0, 1), jnp.swapaxes(cotangent, 0, 1))
    )
    return (
        jnp.swapaxes(of_queries, 0, 1).astype(queries.dtype),
        (of_keys * vector[None, None]).astype(keys.dtype),
        of_vector.astype(vector.dtype),
    )


additive_scores.defvjp(_additive_forward, _additive_backward)


def masked_softmax(scores: jax.Array, mask: jax.Array) -> jax.Array:
    """Computes exp s_i / sum_j exp s_j over the positions of a mask, and exactly 0 elsewhere.

    Gives weights [B, T, S], which sum to 1, or to 0 in a row whose positions are all masked.
    """
    return jax.nn.softmax(scores, axis=-1, where=mask[:, None])


def contexts(weights: jax.Array, memory: jax.Array) -> jax.Array:
    """Computes c = sum_i a_i m_i, [B, T, M]."""
    return products.einsum("bts,bsm->btm", weights, memory)


def attentional_states(
    hidden: jax.Array, context: jax.Array, weights: jax.Array, bias: jax.Array
) -> jax.Array:
    """Computes tanh(W (c : h) + b), [B, T, R], Luong's attentional states (equation 5)."""
    both = jnp.concatenate([context, hidden], axis=-1)
    rows = both.reshape(both.shape[0] * both.shape[1], both.shape[2])
    states = jnp.tanh(products.affine(rows, weights, bias))
    return states.reshape(*both.shape[:2], states.shape[1])
