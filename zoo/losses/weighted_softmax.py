"""The weighted sum of exact softmax losses that training uses.

Its gradients are computed in the forward pass, from the logits of each block of tokens (see
`zoo.losses.token_blocks`): no product is computed twice, where losses per token recompute the
logits. In return, it gives only a sum, whose weights must be known beforehand. Within a block of
tokens both passes go by blocks of words, whose rows of W stay in cache.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import products, row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.sharded_functions import over_tokens
from zoo.losses import softmax, token_blocks, value_checks
from zoo.losses.softmax import Shaping, TermOptions, flat_contexts
from zoo.losses.token_blocks import weighted_rows, weighted_sum, zero_padding_states

# Every block of tokens reads W and adds to a [V, D] gradient, so that the weighted loss takes this
# many tokens at a time also where their logits are more, but no more than W has columns: then the
# logits are not larger than the gradient of W. Of narrow tables, such as tails of an adaptive
# softmax, it takes some tokens all the same.
LEAST_TOKENS_AT_A_TIME = 280
LEAST_OF_NARROW = 16
# Where arrays may lie on several devices, which send the gradient of each block of tokens, blocks
# of the vocabulary take over below this number of tokens, although they compute logits twice.
LEAST_SENT_AT_A_TIME = 128
# Entries of W in a block of words of the weighted loss: on a CPU, rows, their gradients and logits
# stay in the cache of a core between the passes over them. On other platforms all words at once.
ENTRIES_AT_A_TIME = 1 << 17


def least_tokens(columns: int) -> int:
    """Returns the number of tokens that a block has however large the vocabulary is."""
    least = min(LEAST_TOKENS_AT_A_TIME, max(columns, LEAST_OF_NARROW))
    return least if sharded_functions.is_local() else 1


class Held(NamedTuple):
    """What a block of tokens holds between its two passes over the words."""

    cut: row_blocks.RowBlocks
    sums: softmax.Exponentials
    # exp(o + log m - largest), [blocks of words, n, size]; the largest so far, [blocks, n]; and
    # with a soft cap the scores o, [blocks, n, size].
    of_blocks: tuple[jax.Array, jax.Array, jax.Array | None]

    @classmethod
    def of(cls, wanted, hidden, weights, bias, targets, shaping, measure=None):
        """Computes the terms of tokens [n], and holds what their gradients need."""
        words, columns = weights.shape
        alone = measure is None and sharded_functions.is_local()
        if alone and jax.default_backend() == "cpu":
            words = max(softmax.LEAST_ROWS_AT_A_TIME, ENTRIES_AT_A_TIME // columns)
        cut = row_blocks.RowBlocks.from_size(len(weights), min(words, len(weights)), adjacent=True)
        arguments = wanted, cut, hidden, weights, bias, targets, shaping, measure
        terms, *held = softmax.walk(*arguments, kept=True)
        return terms, cls(cut, *held)

    def gradients(self, sums, hidden, weights, targets, shaping, of_log_z, of_target, of_all=None):
        """Adds the gradients of (weights, bias) to their sums, and computes those of hidden.

        The last three are the slopes of log Z, of -o_x, and of -o_v for every word v, [n]; a token
        whose `of_target` is 0 has no gradient.
        """

        def step(carry, inputs):
            (of_weights, of_bias), of_hidden = carry
            number, (exponentials, largest, scores) = inputs
            factor = jnp.exp(largest - self.sums.largest) * (of_log_z / self.sums.total)
            expected = exponentials * factor[:, None]
            slopes = softmax.difference(expected, targets, of_target, self.cut.row_numbers(number))
            if of_all is not None:
                slopes -= of_all[:, None]
            slopes = weighted_rows(shaping.slopes(scores, slopes), of_target)
            slopes = self.cut.masked(number, slopes, 0)
            rows = self.cut.take_narrow(number, weights)
            of_block, of_rows = products.both_gradients(slopes, hidden, rows)
            of_weights = self.cut.add(number, of_weights, of_rows)
            of_bias = self.cut.add(number, of_bias, slopes.sum(axis=0))
            return ((of_weights, of_bias), of_hidden + of_block), None

        zeros = sharded_functions.zeros(hidden.shape, accumulator(hidden), hidden)
        return jax.lax.scan(step, (sums, zeros), (self.cut.numbers(), self.of_blocks))[0]


def _block_of_tokens(penalty, smoothing, shared, fixed, h, data, u):
    """Computes a block's losses and their gradients: see `zoo.losses.token_blocks`."""
    (weights, bias), (log_measure, shaping), (x, contexts) = shared, fixed, data
    measure = None if log_measure is None else log_measure(contexts)
    terms, held = Held.of(TermOptions(smoothing), h, weights, bias, x, shaping, measure)

    def gradients(sums):
        of_log_z, of_target = u * (1 + 2 * penalty * terms.log_z), u * (1 - smoothing)
        of_all = u * smoothing / len(bias) if smoothing else None
        return held.gradients(sums, h, weights, x, shaping, of_log_z, of_target, of_all)

    return terms.loss + penalty * terms.log_z * terms.log_z, gradients


@over_tokens("hidden")
def weighted_softmax_loss(
    hidden,
    weights,
    bias,
    targets,
    token_weights,
    block=None,
    penalty=0.0,
    log_measure=None,
    contexts=None,
    width=0,
    *,
    soft_cap=None,
    temperature=1.0,
    label_smoothing=0.0,
):
    """Computes sum_n u_n (loss_n + penalty log^2 Z_n) of the softmax, with its gradients.

    See `softmax_loss` for loss_n and log Z_n. The sum is computed by blocks of tokens, with
    gradients in the forward pass; under `jit` with several devices, by blocks of a vocabulary that
    is large. No array [tokens, V] is held.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      token_weights: u, [...]; 0 for padding, whose hidden states and targets may be anything.
      block: the number of tokens in a block, which need not divide the number of tokens; None for a
        fast choice.
      penalty: the weight of log^2 Z, nats per squared nat; 0 for no penalty.
      log_measure: a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], nats; None for
        a measure of 1.
      contexts: its argument, a pytree of leaves [..., ?], which get no gradient.
      width: the most numbers that log_measure holds for a token, see `softmax_loss`.
      soft_cap: the number beyond which no score goes, see `softmax_loss`; None for no cap.
      temperature: T, above 0.
      label_smoothing: epsilon, at least 0 and below 1.

    Returns:
      A scalar, nats. Memory beside arguments and results is some 12 MiB or, if that is more, V
      logits of each token of a block, twice with a soft cap: by default of 280 tokens, or as many
      as W has columns.

    Raises:
      ValueError: shapes do not agree, or a number is out of range. TypeError: targets are not whole
        numbers.

    Example:
      >>> table = jnp.zeros((8, 4)), jnp.zeros(8)
      >>> u = jnp.array([1.0, 2.0, 0.0])  # the third token is padding
      >>> loss = losses.weighted_softmax_loss(jnp.ones((3, 4)), *table, jnp.array([0, 7, 0]), u)
      >>> print(f"{loss:.4f}", f"{3 * jnp.log(8):.4f}")
      6.2383 6.2383

    Source: Devlin et al. (2014), section 2.2, for the penalty.
    """
    of_tokens = {"targets": targets, "token_weights": token_weights}
    softmax.check_softmax(hidden, weights, bias, block=block, **of_tokens)
    value_checks.check_number("penalty", penalty)
    value_checks.check_least(0, "at least 0", penalty=penalty)
    value_checks.check_share(label_smoothing=label_smoothing)
    shaping = Shaping.from_options(soft_cap, temperature)
    hidden, contexts = flat_contexts(log_measure, hidden, contexts, targets, weights.shape[0])
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    hidden, token_weights = zero_padding_states(as_wide(hidden, weights, bias), token_weights)
    tokens, vocabulary = targets.shape[0], weights.shape[0]
    by_token = block is not None or log_measure is not None or sharded_functions.is_local()
    if block is None:
        least = least_tokens(weights.shape[1]) if log_measure is None else 1
        block = softmax.token_block(tokens, max(vocabulary, width), least)
    undefined = value_checks.nan_where_invalid(jnp.zeros(()), vocabulary, targets, token_weights)
    if by_token or block >= row_blocks.at_most(LEAST_SENT_AT_A_TIME, tokens):
        return undefined + token_blocks.weighted_loss(
            functools.partial(_block_of_tokens, penalty, label_smoothing),
            block,
            (weights, bias),
            (log_measure, shaping),
            hidden,
            (targets, contexts),
            token_weights,
        )
    wanted = TermOptions(label_smoothing)
    losses, log_z, *_ = softmax.exact_terms(hidden, weights, bias, targets, None, shaping, wanted)
    if penalty:
        losses += penalty * log_z * log_z
    return undefined + weighted_sum(losses, token_weights)
