"""The weighted sum of exact softmax losses that training uses.

Its gradients are computed in the forward pass, from the logits of each block of tokens (see
`zoo.losses.token_blocks`): no product is computed twice, where losses per token recompute the
logits. In return, it gives only a sum, whose weights must be known beforehand. Within a block of
tokens both passes go by blocks of words, whose rows of W stay in cache.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import products, row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.types import Array, Real
from zoo.losses import softmax, token_blocks, value_checks
from zoo.losses.shaping import Shaping
from zoo.losses.softmax import TermOptions, flatten_contexts

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


def least_tokens(weights: Array) -> int:
    """Returns the least number of tokens in a block, however large the vocabulary is; 1 if arrays
    may lie on several devices."""
    minimum = min(LEAST_TOKENS_AT_A_TIME, max(weights.shape[1], LEAST_OF_NARROW))
    return minimum if sharded_functions.is_local(weights) else 1


def goes_by_token(arrays: Any, block: int, tokens: int) -> bool:
    """Whether the weighted loss goes by blocks of so many tokens, with gradients in the forward
    pass: not where arrays lie on an automatic mesh, nor where they may and blocks are small."""
    if sharded_functions.is_local(arrays):
        return True
    is_large = block >= row_blocks.at_most(LEAST_SENT_AT_A_TIME, tokens)
    return is_large and sharded_functions.grid(arrays) == (1, 1)


class BlockResiduals(NamedTuple):
    """A block of tokens between the forward and the backward pass over the words."""

    operands: softmax.Operands
    targets: Array
    shaping: Shaping
    blocks: row_blocks.RowBlocks
    sums: softmax.Exponentials
    # exp(o + log m - largest), [blocks of words, n, size]; the largest so far, [blocks, n]; and
    # the scores o, [blocks, n, size], if the shaping keeps them.
    activations: tuple[Array, Array, Array | None]

    @classmethod
    def forward(cls, options, operands, targets, shaping, measure=None):
        """Returns (terms [n], residuals of their gradients) of a block of tokens."""
        rows, columns = operands[1].shape
        size = rows
        on_cpu = sharded_functions.platform(operands) == "cpu"
        if measure is None and on_cpu and sharded_functions.is_local(operands):
            size = max(softmax.LEAST_ROWS_AT_A_TIME, ENTRIES_AT_A_TIME // columns)
        blocks = row_blocks.RowBlocks.from_size(rows, min(size, rows), adjacent=True)
        arguments = options, blocks, operands, targets, shaping, measure
        terms, sums, activations = softmax.scan_vocabulary(*arguments, keep_residuals=True)
        return terms, cls(operands, targets, shaping, blocks, sums, activations)

    def gradients(self, sums, d_log_z: Array, d_target: Array, d_words: Array | None = None):
        """Returns (sums of (weights, bias) gradients with the block's added, (gradients of hidden
        and of the shaping)).

        `d_log_z`, `d_target` and `d_words`, [n], are the derivatives of the weighted sum of losses
        with respect to log Z, to -o_x, and to -o_v for every word v (None: 0). Where `d_target` is
        0, a token has no gradient.
        """
        hidden, weights, bias = self.operands

        def step(carry, inputs):
            (weights_sum, bias_sum), state_sums = carry
            number, (exponentials, largest, scores) = inputs
            factor = jnp.exp(largest - self.sums.largest) * (d_log_z / self.sums.total)
            expected, words = exponentials * factor[:, None], self.blocks.row_numbers(number)
            gradients = softmax.expected_minus_observed(expected, self.targets, d_target, words)
            if d_words is not None:
                has_share = softmax.has_share(self.blocks.take(number, bias), self.shaping)
                gradients -= d_words[:, None] * has_share[None]
            gradients = token_blocks.zero_padding_rows(gradients, d_target)
            gradients = self.blocks.masked(number, gradients, 0)
            gradients, shaping_gradient = self.shaping.backward(scores, gradients)
            rows = self.blocks.take_narrow(number, weights)
            hidden_gradient, rows_gradient = products.both_gradients(gradients, hidden, rows)
            weights_sum = self.blocks.add(number, weights_sum, rows_gradient)
            bias_sum = self.blocks.add(number, bias_sum, gradients.sum(axis=0))
            state_gradients = hidden_gradient, shaping_gradient
            state_sums = token_blocks.add_gradients(state_sums, state_gradients)
            return ((weights_sum, bias_sum), state_sums), None

        zeros = jax.tree.map(
            lambda x: sharded_functions.zeros(x.shape, accumulator(x), hidden),
            (hidden, self.shaping),
        )
        return jax.lax.scan(step, (sums, zeros), (self.blocks.numbers(), self.activations))[0]


class TokenReport(NamedTuple):
    """What a training step reports of each token.

    Attributes:
      log_prob: o_x - log Z, [...], nats: log p(x), without label smoothing and penalty.
      log_z: log Z, [...], nats.
      best_word: int32 [...], the most probable word.
      correct: bool [...], whether it is the target.
    """

    log_prob: Array
    log_z: Array
    best_word: Array
    correct: Array

    @classmethod
    def from_terms(cls, terms: softmax.Terms, targets: Array) -> "TokenReport":
        """Returns the report of tokens, without gradients."""
        assert terms.log_prob is not None and terms.best_word is not None  # as was asked for
        report = cls(terms.log_prob, terms.log_z, terms.best_word, targets == terms.best_word)
        return jax.lax.stop_gradient(report)


def _block_loss(options, penalty, params, log_measure, states, data, u):
    """Returns a block's (losses [n], function that adds their gradients, and a `TokenReport` if
    asked for): see `token_blocks`."""
    (weights, bias), (h, shaping), (x, contexts) = params, states, data
    measure = None if log_measure is None else log_measure(contexts)
    terms, residuals = BlockResiduals.forward(options, (h, weights, bias), x, shaping, measure)
    smoothing = options.smoothing

    def gradients(sums):
        d_log_z = u * (1 + 2 * penalty * terms.log_z)
        words = softmax.has_share(bias, shaping).sum()
        d_words = u * smoothing / words if smoothing else None
        return residuals.gradients(sums, d_log_z, u * (1 - smoothing), d_words)

    report = (TokenReport.from_terms(terms, x),) if options.report else ()
    return terms.loss + penalty * terms.log_z * terms.log_z, gradients, *report


@sharded_functions.over_tokens("hidden")
def weighted_softmax_loss(
    hidden: Array,
    weights: Array,
    bias: Array,
    targets: Array,
    token_weights: Array,
    block: int | None = None,
    penalty: Real = 0.0,
    log_measure: Callable[[Any], Array] | None = None,
    contexts: Any = None,
    width: int = 0,
    *,
    soft_cap: Real | None = None,
    temperature: Real = 1.0,
    label_smoothing: float = 0.0,
    report: bool = False,
) -> Array | tuple[Array, TokenReport]:
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
      temperature: T, above 0, see `softmax_loss`.
      label_smoothing: epsilon, at least 0 and below 1.
      report: whether to return a `TokenReport` too, from the same logits.

    Returns:
      A scalar, nats; with `report`, (the scalar, a `TokenReport`, which gets no gradient). Memory
      beside arguments and results is some 12 MiB or, if that is more, V logits of each token of a
      block, twice with a soft cap or an array of temperatures: by default of 280 tokens, or as many
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
    table = hidden, weights, bias
    softmax.check_softmax(table, block, targets=targets, token_weights=token_weights)
    value_checks.check_number("penalty", penalty)
    value_checks.check_least(0, "at least 0", penalty=penalty)
    value_checks.check_share(label_smoothing=label_smoothing)
    shaping, shape = Shaping.from_options(soft_cap, temperature, targets.shape), targets.shape
    hidden, contexts = flatten_contexts(log_measure, hidden, contexts, targets, weights.shape[0])
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    hidden, token_weights = token_blocks.zero_padding_states(
        as_wide(hidden, weights, bias), token_weights
    )
    count, vocabulary = targets.shape[0], weights.shape[0]
    has_blocks = block is not None or log_measure is not None
    if block is None:
        minimum = least_tokens(weights) if log_measure is None else 1
        block = softmax.token_block(count, max(vocabulary, width), minimum)
    undefined = value_checks.nan_where_invalid(jnp.zeros(()), vocabulary, targets, token_weights)
    options = TermOptions(label_smoothing, report=report)
    if has_blocks or goes_by_token((hidden, weights), block, count):
        block_loss = functools.partial(_block_loss, options, penalty)
        shared, tokens = ((weights, bias), log_measure), ((hidden, shaping), (targets, contexts))
        loss, *reports = token_blocks.weighted_loss(
            block_loss, block, shared, tokens, token_weights
        )
    else:
        table = hidden, weights, bias
        terms = softmax.softmax_terms(table, targets, None, shaping, options)
        losses = terms.loss + penalty * terms.log_z * terms.log_z if penalty else terms.loss
        loss = token_blocks.weighted_sum(losses, token_weights)
        reports = [TokenReport.from_terms(terms, targets)] if report else []
    if not report:
        return undefined + loss
    return undefined + loss, jax.tree.map(lambda x: x.reshape(shape), reports[0])
