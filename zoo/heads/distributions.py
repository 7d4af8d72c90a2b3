"""Entropy and Kullback-Leibler divergence of the distributions that heads give.

For p, of one head, and q, of another or the same one, by token,

    H(p) = -sum_v p(v) log p(v),    KL(p || q) = sum_v p(v) (log p(v) - log q(v)),

in blocks of tokens, in the backward pass too, so that no array [tokens, V] is held. To distil a
model (Hinton, Vinyals and Dean 2015), train on weighted sums of kl_divergence(teacher, student):
with respect to the student, its gradient equals the cross-entropy's.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks
from zoo.base.arrays.types import Context, Params, Prepared, Tables
from zoo.base.component_registry import in_zoo
from zoo.errors import UserError
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround, nested
from zoo.lexicon import Lexicon
from zoo.losses import softmax
from zoo.losses.entropy import softmax_kl_divergence


class Distribution(NamedTuple):
    """A distribution over the next word: the arguments of a head's `log_probs`.

    Attributes:
      head: a head with `log_probs`.
      params: its parameters.
      tables: its `evaluation_tables` or `tables` of the lexicon.
      hidden: h, [..., D].
      context: the context of its background or expert, leaves [..., ?], or None.
      prepared: the result of `Head.prepared`, or None.

    Example:
      >>> head = heads.Softmax()
      >>> distribution = heads.Distribution(head, head.init(key, 4, lexicon), {}, hidden)
      >>> heads.entropy(distribution).shape
      (2,)
    """

    head: Head
    params: Params
    tables: Tables
    hidden: jax.Array
    context: Context = None
    prepared: Prepared = None


def entropy(p: Distribution) -> jax.Array:
    """Computes -sum_v p(v) log p(v); a word of probability 0 adds nothing.

    Args:
      p: a head with its arguments.

    Returns:
      [...], nats, differentiable.

    Example:
      >>> params = {"weights": jnp.zeros((3, 4)), "bias": jnp.zeros(3)}  # three words alike: log 3
      >>> entropies = heads.entropy(heads.Distribution(heads.Softmax(), params, {}, hidden))
      >>> [round(float(entropy), 3) for entropy in entropies]
      [1.099, 1.099]
    """

    _check_distribution("entropy", "p", p)
    targets = jnp.zeros(jnp.shape(p.hidden)[:-1], jnp.int32)  # which the entropy does not read
    return p.head.statistics(*p[1:4], targets, context=p.context, prepared=p.prepared).entropy


def kl_divergence(p: Distribution, q: Distribution) -> jax.Array:
    """Computes sum_v p(v) (log p(v) - log q(v)); infinite where q is 0 and p is not.

    Args:
      p: a head with its arguments, such as a teacher's; put `jax.lax.stop_gradient` around arrays
        that are not to be trained.
      q: another head over the same words; its hidden states may have another size.

    Returns:
      [...], nats, differentiable.

    Raises:
      ValueError: p and q have different tokens or numbers of words.

    Example:
      >>> head, params = heads.Softmax(), {"weights": jnp.zeros((3, 4)), "bias": jnp.zeros(3)}
      >>> q = heads.Distribution(head, params, {}, hidden)
      >>> bias = jnp.log(jnp.array([0.5, 0.25, 0.25]))
      >>> p = q._replace(params={**params, "bias": bias})
      >>> [round(float(nats), 3) for nats in heads.kl_divergence(p, q)]  # log 3 - 1.5 log 2
      [0.059, 0.059]
    """
    for name, distribution in {"p": p, "q": q}.items():
        _check_distribution("kl_divergence", name, distribution)
    if jnp.shape(p.hidden)[:-1] != jnp.shape(q.hidden)[:-1]:
        raise ValueError(
            f"p has hidden states of the shape {p.hidden.shape} and q of {q.hidden.shape}: give "
            "both for the same tokens"
        )

    p_words, q_words = _count_words(p), _count_words(q)
    if p_words != q_words:
        raise ValueError(
            f"p is over {p_words:,} words, and q over {q_words:,}: give heads over the same words"
        )
    p_arrays, q_arrays = (d.head._as_softmax(*d[1:4], d.prepared) for d in (p, q))
    if p_arrays and q_arrays:
        soft_caps = p_arrays.soft_cap, q_arrays.soft_cap
        return softmax_kl_divergence(*p_arrays[:3], *q_arrays[:3], soft_cap=soft_caps)

    prepared = [
        d.head.prepared(d.params, d.tables) if d.prepared is None else d.prepared for d in (p, q)
    ]

    @jax.checkpoint  # what a block holds is computed again in the backward pass
    def block_divergence(columns):
        *hidden, contexts = columns
        log_p, log_q = (
            d.head.log_probs(d.params, d.tables, h, context=c, prepared=arrays)
            for d, arrays, h, c in zip((p, q), prepared, hidden, contexts, strict=True)
        )
        probabilities = jnp.exp(log_p)
        return (probabilities * jnp.where(probabilities > 0, log_p - log_q, 0)).sum(axis=-1)

    arrays = jnp.asarray(p.hidden), jnp.asarray(q.hidden), (p.context, q.context)
    shape = arrays[0].shape[:-1]
    tokens = math.prod(shape)
    columns = jax.tree.map(lambda x: x.reshape(tokens, *x.shape[len(shape) :]), arrays)
    scores = sum(d.head.scores_per_token(p_words) for d in (p, q))
    block = softmax.token_block(tokens, scores)
    return row_blocks.map_rows(block_divergence, columns, block).reshape(shape)


def _check_distribution(function, name, distribution):
    if not isinstance(distribution, Distribution):
        raise TypeError(
            f"{function}: {name} is a {type(distribution).__name__}: give "
            "heads.Distribution(head, params, tables, hidden)"
        )
    if distribution.head.spells and not distribution.head.renormalised:
        raise ValueError(
            f"{function}: the head of {name} is normalised over all spellings, not over the words "
            "of a lexicon: give one with renormalised=True"
        )


def _count_words(p):
    """Counts the words of a distribution, after the checks of its arguments."""
    return jax.eval_shape(
        lambda: p.head.log_probs(*p[1:4], context=p.context, prepared=p.prepared)
    ).shape[-1]


# ----------- A check of users' heads: whether their probabilities are ones
# A head of a user's module whose log-probabilities do not sum to one, or whose two methods
# disagree, would give perplexities that look like any other.

_TOLERANCE = 1e-3  # nats: float32 sums over large vocabularies are exact to some 1e-5


def check_untrained(model, tables: Tables, *lexicons: Lexicon):
    """Checks the head of an untrained model, with random parameters; see `check`."""
    head = [*nested(model.head)][-1]
    # Others are not worth drawing parameters.
    if not in_zoo(type(head).__module__) and head.has_log_probs:
        params = model.head_params(model.init(jax.random.key(0), *lexicons))
        check(model.head, params, tables["head"], model.hidden_size, len(lexicons[0]))


def check(
    head: Head, params: Params, tables: Tables, hidden_size: int, vocabulary: int | None = None
):
    """Compares the methods of a head of another module at three random hidden states.

    Of a head around another, the inner head is checked. Heads with a background are not checked,
    and no head is in a run of several processes.
    """
    while isinstance(head, HeadAround):
        params, tables, head = head.inner_params(params), tables["head"], head.head
    head_class = type(head)
    if in_zoo(head_class.__module__) or not head.has_log_probs:
        return
    if head.background is not None or jax.process_count() > 1:
        return
    name = f"{head_class.__module__}:{head_class.__qualname__}"
    hidden = jax.random.normal(jax.random.key(0), (3, hidden_size))
    log_probs = head.log_probs(params, tables, hidden)
    if vocabulary not in (None, log_probs.shape[-1]):
        raise UserError(
            f"{name} has {log_probs.shape[-1]:,} words, and the lexicon {vocabulary:,}: make its "
            "parameters for the words of the lexicon."
        )
    total = jax.nn.logsumexp(log_probs, axis=-1)
    if not head.spells and not (jnp.abs(total) < _TOLERANCE).all():
        raise UserError(
            f"{name} is not a distribution: the probabilities that its _log_probs gives to all "
            f"words sum to {float(jnp.exp(total[0])):.4g}, not to 1, so that its perplexities mean "
            "nothing: normalise them."
        )
    words = jnp.array([0, log_probs.shape[-1] // 2, log_probs.shape[-1] - 1])
    expected = jnp.take_along_axis(log_probs, words[:, None], axis=-1)[:, 0]
    actual = head.log_prob(params, tables, hidden, words)
    is_close = jnp.abs(actual - expected) < _TOLERANCE * (1 + jnp.abs(expected))
    # Both may be -inf, as of sparsemax or masked words.
    differs = ~(is_close | (actual == expected))
    if differs.any():
        index = int(differs.argmax())
        raise UserError(
            f"{name} contradicts itself: _log_prob_and_log_z gives {float(actual[index]):.4f} nats "
            f"to a word to which _log_probs gives {float(expected[index]):.4f}: make them agree."
        )
