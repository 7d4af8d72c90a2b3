"""A head with a continuous cache: a memory of the states and words that were read last.

Grave, Joulin and Usunier, "Improving neural language models with a continuous cache" (2017). The
memory holds the last N pairs (h_i, x_i) of a hidden state and the word that followed it. With the
flatness theta and the weight l,

    p_cache(x | h)  is proportional to  sum_i [x_i = x] exp(theta h . h_i)
    p'(x | h) = (1 - l) p(x | h) + l p_cache(x | h),

and p'(x | h) = p(x | h) as long as the memory is empty. Nothing is trained: the parameters are the
inner head's, so any trained model can be judged with a cache. A model with a cache learns from the
text that it is judged on: its figures are not those of a model that only knows its training text.
"""

import dataclasses
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import memory
from zoo.base.arrays.types import Carry, Context, Tables
from zoo.errors import UserError, check_above, check_least, check_rates
from zoo.heads import checks
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround
from zoo.heads.softmax import Softmax
from zoo.lexicon import Lexicon
from zoo.priors.prior import Contextual


class MemoryContext(NamedTuple):
    """The context of a position: scores and words of the memory's pairs."""

    scores: jax.Array  # theta h . h_i of each pair, [..., N']; -inf where there is none
    words: jax.Array  # int32 [..., N'], the words x_i


class MemoryCarry(NamedTuple):
    """The state of a memory along a text."""

    states: jax.Array  # h_i, [B, N, D], the last pair at the end
    words: jax.Array  # int32 [B, N], x_i; -1 where there is no pair yet
    last: jax.Array  # [B, D], the state of the position before, which waits for its word
    begun: jax.Array  # bool [B], whether there is such a state


@dataclasses.dataclass(frozen=True)
class Memory(Contextual):
    """The last pairs of a state and the word after it, scored by their likeness to a state.

    A language model runs it along a text as it runs backgrounds, and gives it the hidden states.
    """

    size: int = 500
    flatness: float = 0.3

    reads_states: ClassVar[bool] = True

    def tables(self, lexicon: Lexicon) -> Tables:
        return {}

    def initial_carry(self, batch: int, hidden_size: int = 0) -> MemoryCarry:
        description = (
            f"a cache of {self.size:,} states, of {hidden_size:,} numbers in {batch:,} batch rows"
        )
        # Before and after a window.
        memory.check(description, 2 * 4 * batch * self.size * hidden_size, memory.host_memory())
        return MemoryCarry(
            jnp.zeros((batch, self.size, hidden_size)),
            jnp.full((batch, self.size), -1, jnp.int32),
            jnp.zeros((batch, hidden_size)),
            jnp.zeros(batch, bool),
        )

    def apply(
        self,
        tables: Tables,
        words: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        hidden: jax.Array | None = None,
    ) -> tuple[Context, Carry]:
        """Computes (MemoryContext of each position, leaves [B, T, N + T]; the carry)."""
        if hidden is None:
            raise TypeError("Memory.apply: give hidden=, the hidden states of the positions")
        time = words.shape[1]
        # The pair that position t completes: the state before it, and the word that followed.
        before = jnp.concatenate([carry.last[:, None], hidden[:, :-1].astype(carry.last.dtype)], 1)
        has_pair = jnp.ones(words.shape, bool).at[:, 0].set(carry.begun)
        texts = jnp.zeros(words.shape, jnp.int32)
        if reset is not None:
            has_pair &= ~reset
            texts = jnp.cumsum(reset, axis=1, dtype=jnp.int32)
        states = jnp.concatenate([carry.states, before], axis=1)
        after = jnp.concatenate([carry.words, jnp.where(has_pair, words, -1)], axis=1)
        # The number of the text that each pair is from; pairs of the carry are from text 0.
        pair_texts = jnp.pad(texts, ((0, 0), (self.size, 0)))
        age = self.size + jnp.arange(time)[:, None] - jnp.arange(self.size + time)[None]
        in_memory = ((age >= 0) & (age < self.size))[None] & (after >= 0)[:, None]
        in_memory &= pair_texts[:, None] == texts[:, :, None]
        scores = self.flatness * jnp.einsum("btd,bnd->btn", hidden, states)
        context = MemoryContext(
            jnp.where(in_memory, scores, -jnp.inf), jnp.broadcast_to(after[:, None], scores.shape)
        )
        last_text = texts[:, -1:]
        last_words = jnp.where(pair_texts == last_text, after, -1)
        next_carry = MemoryCarry(
            states[:, time:],
            last_words[:, time:],
            hidden[:, -1].astype(carry.last.dtype),
            jnp.ones_like(carry.begun),
        )
        return context, next_carry


@dataclasses.dataclass(frozen=True)
class WithCache(HeadAround):
    """p'(x | h) = (1 - l) p(x | h) + l p_cache(x | h); p where the memory is empty.

    The parameters are the inner head's. Training trains the inner head, by its own loss.

    Attributes:
      head: the inner head, p, without a background or expert of its own.
      size: N, the number of words in the memory.
      flatness: theta; the greater, the fewer words share the cache's probability.
      weight: l.

    Example:
      >>> head = heads.WithCache(heads.Softmax(initial_scale=0.0), size=2, weight=0.5)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> from zoo.heads.with_cache import MemoryContext
      >>> memory = MemoryContext(jnp.zeros((2, 1)), jnp.array([[0], [1]]))  # one word each
      >>> np.exp(head.log_prob(params, tables, hidden, targets, context=memory)).round(2)
      array([0.67, 0.17], dtype=float32)

    Source: Grave, Joulin and Usunier (2017), section 3.
    """

    head: Head = Softmax()
    size: int = 500
    flatness: float = 0.3
    weight: float = 0.1

    def __post_init__(self):
        check_least(self, "model.head", size=1)
        check_above(self, "model.head", flatness=0)
        check_rates(self, "model.head", "weight")
        if self.head.background is not None:
            raise UserError(
                f"head of WithCache is a {type(self.head).__name__} with a background or expert of "
                "its own: give a head without one."
            )

    @property
    def kinds(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return self.head.kinds

    @property
    def loss_name(self) -> str:
        return self.head.loss_name

    @property
    def background(self) -> Memory:  # type: ignore[override]
        """The memory, which the model runs along the text as it runs backgrounds."""
        return Memory(self.size, self.flatness)

    @property
    def array_shapes(self) -> Shapes | None:
        shapes = self.head.array_shapes
        return None if shapes is None else Shapes(shapes.params, {"head": None, "background": None})

    def _check_inner(self, params, tables):
        arguments = {"params": params, "tables": tables["head"]}
        checks.check_params(self.head, f"{type(self.head).__name__}.loss", arguments)

    def _loss(self, params, tables, hidden, targets, key, context):
        self._check_inner(params, tables)
        return self.head._loss(params, tables["head"], hidden, targets, key=key, context=None)

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        self._check_inner(params, tables)
        inner = params, tables["head"], hidden, targets, token_weights
        return self.head._weighted_loss(*inner, key=key, context=None)

    def _log_shares(self, context):
        """Returns (log p_cache of each pair [..., N], whether the memory is empty [...])."""
        if not isinstance(context, MemoryContext):
            raise TypeError(
                f"WithCache: context is a {type(context).__name__}: give the output of the "
                "background's `apply`, a MemoryContext"
            )
        if context.scores.shape != context.words.shape:
            raise ValueError(
                f"WithCache: context has scores of the shape {context.scores.shape} for words of "
                f"the shape {context.words.shape}: give the output of the background's `apply`"
            )
        total = _log_sum(context.scores)
        empty = jnp.isneginf(total)
        return context.scores - jnp.where(empty, 0, total)[..., None], empty

    def _mix(self, log_prob, cache_log_prob, empty):
        log_weight = math.log(self.weight) if self.weight else -math.inf
        mixture = jnp.logaddexp(math.log1p(-self.weight) + log_prob, log_weight + cache_log_prob)
        return jnp.where(empty, log_prob, mixture)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        log_prob, log_z = self.head.log_prob_and_log_z(
            params, tables["head"], hidden, targets, prepared=prepared
        )
        shares, empty = self._log_shares(context)
        target_shares = jnp.where(context.words == targets[..., None], shares, -jnp.inf)
        return self._mix(log_prob, _log_sum(target_shares), empty), log_z

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = self.head.log_probs(params, tables["head"], hidden, prepared=prepared)
        shares, empty = self._log_shares(context)
        shape, vocabulary = log_probs.shape[:-1], log_probs.shape[-1]
        # Words of no pair are -1: they have no share, and no place in the sums.
        words = jnp.where(context.words < 0, vocabulary, context.words)
        rows = jnp.arange(log_probs.size // vocabulary)[:, None]
        words, shares = (x.reshape(rows.shape[0], -1) for x in (words, jnp.exp(shares)))
        sums = jnp.zeros((rows.shape[0], vocabulary), shares.dtype)
        sums = sums.at[rows, words].add(shares, mode="drop").reshape(*shape, vocabulary)
        return self._mix(log_probs, jnp.log(sums), empty[..., None])


# Below every score, and finite: the maximum without any pair.
_LOWEST_SCORE = -1e30


def _log_sum(scores):
    """Computes the log of the sum of exp(scores) [..., N], -inf without any, with a gradient."""
    greatest = jnp.maximum(scores.max(axis=-1, keepdims=True), _LOWEST_SCORE)
    total = jnp.exp(scores - greatest).sum(axis=-1)
    return jnp.where(
        total > 0, jnp.log(jnp.where(total > 0, total, 1)) + greatest[..., 0], -jnp.inf
    )
