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
from zoo.errors import UserError
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround
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
      >>> one = heads.Distribution(head, head.init(key, 4, lexicon), {}, hidden)
      >>> heads.entropy(one).shape
      (2,)
    """

    head: Head
    params: Params
    tables: Tables
    hidden: jax.Array
    context: Context = None
    prepared: Prepared = None

    def _prepared(self) -> Prepared:
        """Returns the arrays that are computed once instead of in every block."""
        given = self.prepared
        return self.head.prepared(self.params, self.tables) if given is None else given


def entropy(p: Distribution) -> jax.Array:
    """Computes -sum_v p(v) log p(v); a word of probability 0 adds nothing.

    Args:
      p: a head with its arguments.

    Returns:
      [...], nats, differentiable.

    Example:
      >>> params = {"weights": jnp.zeros((3, 4)), "bias": jnp.zeros(3)}  # three words alike: log 3
      >>> entropies = heads.entropy(heads.Distribution(heads.Softmax(), params, {}, hidden))
      >>> [round(float(one), 3) for one in entropies]
      [1.099, 1.099]
    """

    _check_distribution("entropy", "p", p)
    targets = jnp.zeros(jnp.shape(p.hidden)[:-1], jnp.int32)  # which the entropy does not read
    arguments = p.params, p.tables, p.hidden, targets
    of_tokens = p.head.statistics(*arguments, context=p.context, prepared=p.prepared)
    return of_tokens.entropy


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
      >>> alike = {"weights": jnp.zeros((3, 4)), "bias": jnp.zeros(3)}
      >>> halves = {**alike, "bias": jnp.log(jnp.array([0.5, 0.25, 0.25]))}
      >>> p, q = (heads.Distribution(heads.Softmax(), one, {}, hidden) for one in (halves, alike))
      >>> [round(float(one), 3) for one in heads.kl_divergence(p, q)]  # log 3 - 1.5 log 2
      [0.059, 0.059]
    """
    for name, given in {"p": p, "q": q}.items():
        _check_distribution("kl_divergence", name, given)
    if jnp.shape(p.hidden)[:-1] != jnp.shape(q.hidden)[:-1]:
        raise ValueError(
            f"p has hidden states of the shape {p.hidden.shape} and q of {q.hidden.shape}: give "
            "both for the same tokens"
        )

    if (words := _words(p)) != (others := _words(q)):
        raise ValueError(
            f"p is over {words:,} words, and q over {others:,}: give heads over the same words"
        )
    if (divergence := _of_softmaxes(p, q)) is not None:
        return divergence

    def of_block(log_p, log_q):
        shares = jnp.exp(log_p)
        return (shares * jnp.where(shares > 0, log_p - log_q, 0)).sum(axis=-1)

    return _over_blocks(of_block, p, q)


def _check_distribution(function, name, given):
    if not isinstance(given, Distribution):
        raise TypeError(
            f"{function}: {name} is a {type(given).__name__}: give "
            "heads.Distribution(head, params, tables, hidden)"
        )
    if given.head.spells and not given.head.renormalised:
        raise ValueError(
            f"{function}: the head of {name} is normalised over all spellings, not over the words "
            "of a lexicon: give one with renormalised=True"
        )


def _of_softmaxes(p, q):
    """Computes the divergence of two softmaxes with one cap; None of other distributions."""
    one, other = (d.head._as_softmax(d.params, d.tables, d.hidden, d.prepared) for d in (p, q))
    if one is None or other is None or one.soft_cap != other.soft_cap:
        return None
    return softmax_kl_divergence(*one[:3], *other[:3], soft_cap=one.soft_cap)


def _words(given):
    """Counts the words of a distribution, after the checks of its arguments."""
    return jax.eval_shape(
        lambda: given.head.log_probs(*given[1:4], context=given.context, prepared=given.prepared)
    ).shape[-1]


def _over_blocks(function, *distributions):
    """Computes a function of log p of every word, [n, V] of each distribution, by token blocks."""
    distributions = tuple(d._replace(hidden=jnp.asarray(d.hidden)) for d in distributions)
    shape = distributions[0].hidden.shape[:-1]
    tokens = math.prod(shape)
    prepared = [distribution._prepared() for distribution in distributions]

    def flat(tree):
        return jax.tree.map(lambda x: x.reshape(tokens, *x.shape[len(shape) :]), tree)

    def log_probs(columns):
        *hidden, contexts = columns
        return [
            d.head.log_probs(d.params, d.tables, h, context=c, prepared=once)
            for d, once, h, c in zip(distributions, prepared, hidden, contexts, strict=True)
        ]

    columns = *(flat(d.hidden) for d in distributions), [flat(d.context) for d in distributions]
    words = [x.shape[-1] for x in jax.eval_shape(log_probs, columns)]
    sizes = zip(distributions, words, strict=True)
    scores = sum(d.head.scores_per_token(count) for d, count in sizes)
    block = softmax.token_block(tokens, scores)
    # What a block holds is computed again in the backward pass.
    of_block = jax.checkpoint(lambda columns: function(*log_probs(columns)))
    return row_blocks.map_rows(of_block, columns, block).reshape(shape)


# ----------- A check of heads that are not Zoo's own: whether their probabilities are ones
# A head of a user's module whose log-probabilities do not sum to one, or whose two methods
# disagree, would give perplexities that look like any other.

_TOLERANCE = 1e-3  # nats: float32 sums over large vocabularies are exact to some 1e-5


def check_untrained(model, tables: Tables, *lexicons: Lexicon):
    """Checks the head of a model that is to be trained, with drawn parameters; see `check`."""
    if _is_own(_innermost(model.head)):  # others are not worth drawing parameters
        params = model.head_params(model.init(jax.random.key(0), *lexicons))
        check(model.head, params, tables["head"], model.hidden_size, len(lexicons[0]))


def _innermost(head):
    return _innermost(head.head) if isinstance(head, HeadAround) else head


def _is_own(head):
    return type(head).__module__.partition(".")[0] != "zoo" and head.has_log_probs


def check(
    head: Head, params: Params, tables: Tables, hidden_size: int, vocabulary: int | None = None
):
    """Compares the methods of a head of another module at three random hidden states.

    Of a head around another one, the inner head is checked. Heads with a background are not
    checked, nor is any in a run of several processes.
    """
    while isinstance(head, HeadAround):
        params, tables, head = head.inner_params(params), tables["head"], head.head
    if not _is_own(head):
        return
    kind = type(head)
    if head.background is not None or jax.process_count() > 1:
        return
    name = f"{kind.__module__}:{kind.__qualname__}"
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
    found = head.log_prob(params, tables, hidden, words)
    close = jnp.abs(found - expected) < _TOLERANCE * (1 + jnp.abs(expected))
    wrong = ~(close | (found == expected))  # both may be -inf, as of sparsemax or masked words
    if wrong.any():
        at = int(wrong.argmax())
        raise UserError(
            f"{name} contradicts itself: _log_prob_and_log_z gives {float(found[at]):.4f} nats to "
            f"a word to which _log_probs gives {float(expected[at]):.4f}: make them agree."
        )
