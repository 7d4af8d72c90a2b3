"""A check of heads that are not Zoo's own: whether their probabilities are ones.

A head of a user's module whose log-probabilities do not sum to one, or whose two methods disagree,
would give perplexities that look like any other.
"""

import jax
import jax.numpy as jnp

from zoo.arrays.types import Params, Tables
from zoo.errors import UserError
from zoo.heads.head import Head, HeadAround
from zoo.lexicon import Lexicon

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

    Of a head around another one, such as `WithCache`, the inner head is checked. Heads of Zoo,
    heads with a background, and heads without `_log_probs` are not checked, nor is any in a run of
    several processes.
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
