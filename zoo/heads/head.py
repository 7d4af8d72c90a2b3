"""The contract of a head: from a hidden state to a distribution over words."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays import blocks
from zoo.arrays.partition import Axes, named
from zoo.arrays.types import Context, Key, Params, Prepared, Tables
from zoo.heads import arguments
from zoo.heads.evaluated import Evaluated
from zoo.heads.given import Shapes
from zoo.lexicon import Lexicon
from zoo.losses import softmax, softmax_sum, softmax_words
from zoo.losses.token_weights import weighted_sum
from zoo.priors.contextual import Contextual


@arguments.guarded
class Head(Evaluated):
    """The contract of heads, to train, score and sample. Subclasses are frozen dataclasses.

    Methods are pure functions. Shapes: hidden [..., D], targets and words int32 [...], losses and
    log-probabilities [...] in nats per token. Token weights are [...] or broadcast to it by the
    rules of numpy; booleans and whole numbers become floats. Other shapes are a ValueError, and so
    are tables of another lexicon than the parameters; targets that are no word id, which
    compiled code cannot look at, give any number. Of no tokens, results are empty and sums 0.

    A head of your own writes `init`, `log_prob_and_log_z` and, unless it is open, `log_probs`;
    `tables` if it needs to know something of the words; `loss` if that is not -log p:

        tables(lexicon) -> pytree of arrays, what the head needs to know of the words
        init(key, hidden_size, lexicon) -> params
        loss(params, tables, hidden, targets, *, key=None, context=None) -> [...]
        weighted_loss(params, tables, hidden, targets, token_weights, ...) -> a scalar
        weighted_loss_and_penalty(..., token_weights, ...) -> (the same, what of it is penalty)
        penalties(params, hidden) -> [...], what of the loss is penalty
        log_prob(params, tables, hidden, targets, *, context=None, ...) -> [...]  exact, normalised
        log_prob_and_log_z(params, tables, hidden, targets, ...) -> ([...], [...])
        log_probs(params, tables, hidden, *, context=None, ...) -> [..., V]       closed heads
        sample(params, tables, hidden, key, *, context=None, ...) -> [...]
        top_k(params, tables, hidden, k, ...) -> (log_probs [..., k], words [..., k])
        partition(lexicon) -> names of the axes of the parameters, a tree like `init`'s

    `loss` is what is trained: it may be sampled, and has all penalties in it. Train on
    `weighted_loss`, the sum of token_weights * loss, which is the faster way to it and knows
    padding: a token of weight 0 adds nothing, whatever its state and target hold, and no gradient
    but that of its own weight. `log_prob` is what is reported. log Z is the logarithm of what the
    head's scores have to be divided by: where it is near 0 for every hidden state, the scores may
    be used as they are. `context` is what a prior needs to know beyond the hidden state.

    What evaluation asks for besides stands in `zoo.heads.evaluated.Evaluated`. `log_prob` and the
    methods below it take what `prepared` gave as `prepared=`, and compute it without. A head that
    prepares nothing need not know the argument: it is not handed any.

    The heads of the zoo write the methods with an underscore, whose arguments have been looked at.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # Whether the output weights are the embedding's table, handed in as params["weights"].
    tied: bool = False

    def __init_subclass__(cls, **options):
        """Lets the methods of every head look at their arguments; see `arguments`."""
        super().__init_subclass__(**options)
        arguments.guarded(cls)

    @property
    def row_tables(self) -> tuple[str, ...]:
        """Names of the parameters, "a/b" for b within a, that `loss` reads by
        `zoo.arrays.rows.take` alone: a training step then needs the gradients of some rows only.
        See zoo.training.row_sparse. None, unless a head says otherwise."""
        return ()

    @property
    def draws_noise(self) -> bool:
        """Whether `loss` draws random numbers. Devices that share the tokens out then compute it
        together, so that what is drawn is the same in every layout: see `zoo.heads.sharding`."""
        return False

    @property
    def array_shapes(self) -> Shapes | None:
        """The shapes of parameters and tables, by which methods know those of others; None of a
        head that does not say."""
        return None

    @property
    def parameter_axes(self) -> Axes:
        """Names of the axes of the parameters that have some: see `partition`."""
        return {}

    # A prior that runs along the sequence and gives `context`; the model feeds it.
    if TYPE_CHECKING:  # a field of some heads

        @property
        def background(self) -> Contextual | None: ...

    else:
        background = None

    @property
    def loss_name(self) -> str:
        """The name of `loss` where it is shown: a head whose loss is not -log_prob names it."""
        return "loss"

    def tables(self, lexicon: Lexicon) -> Tables:
        """The arrays that the head needs to know of the words; none, unless a head has some.

        Args:
          lexicon: the words.
        """
        return {}

    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """The parameters at the start of training; every head writes this itself.

        Args:
          key: a key of `jax.random`.
          hidden_size: D.
          lexicon: the words.
        """
        raise self._unwritten("init")

    def partition(self, lexicon: Lexicon) -> Params:
        """The names of the axes of the parameters, a tree like `init`'s of `PartitionSpec`s.

        A name is "words" (rows of words, or of what they are grouped into), "features", "hidden"
        (numbers of a hidden state), or None. `zoo.arrays.partition.on_mesh` makes layouts
        of such names.

        Args:
          lexicon: the words.
        """
        shapes = jax.eval_shape(lambda: self.init(jax.random.key(0), 1, lexicon))
        return named(shapes, self.parameter_axes)

    # ------------------------------------------------------------ to train

    def loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """Computes what is trained: -log p(targets | hidden) with the penalties, unless a head says
        otherwise.

        Args:
          params: the parameters.
          tables: `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          key: of a sampled loss.
          context: of a background or expert, leaves [..., ?].

        Returns:
          [...], nats.
        """
        return self._loss(params, tables, hidden, targets, key, context)

    def weighted_loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """Computes sum of token_weights * loss: what to train on.

        Args:
          params: the parameters.
          tables: `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          token_weights: u, [...] or broadcast to it; where 0, as of padding, a token may hold
            anything.
          key: of a sampled loss.
          context: of a background or expert, leaves [..., ?].

        Returns:
          A scalar, nats.
        """
        return self._weighted_loss(params, tables, hidden, targets, token_weights, key, context)

    def weighted_loss_and_penalty(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes `weighted_loss`, and what of it is penalty.

        Args:
          params: the parameters.
          tables: `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          token_weights: u, [...] or broadcast to it.
          key: of a sampled loss.
          context: of a background or expert, leaves [..., ?].

        Returns:
          (sum of token_weights * loss, sum of token_weights * penalties), scalars, nats.
        """
        return self._weighted_loss_and_penalty(
            params, tables, hidden, targets, token_weights, key, context
        )

    def penalties(self, params: Params, hidden: jax.Array) -> jax.Array:
        """The part of the losses that is shown apart from -log p: 0, unless a head has one.

        Args:
          params: the parameters.
          hidden: h, [..., D].

        Returns:
          [...], nats; it does not depend on the target.
        """
        return jnp.zeros(hidden.shape[:-1], softmax.accumulator(hidden))

    # ------------------------------------------------------------ to score and to sample

    def log_prob(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p(targets | hidden), exactly.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          [...], nats.
        """
        given = {"context": context, "prepared": prepared}
        return self.log_prob_and_log_z(params, tables, hidden, targets, **given)[0]

    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes log p(targets | hidden) and log Z; every head writes this itself.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          targets: x, int [...], each in [0, V).
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          (log p [...], log Z [...]), nats.
        """
        return self._log_prob_and_log_z(params, tables, hidden, targets, context, prepared)

    def log_probs(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Computes log p of every word; closed heads write this themselves.

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          [..., V], nats.
        """
        return self._log_probs(params, tables, hidden, context, prepared)

    def sample(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        key: jax.Array,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> jax.Array:
        """Draws words from p(. | hidden), in blocks of tokens: never [tokens, V].

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          key: a key of `jax.random`.
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          int32 [...].
        """
        return self._sample(params, tables, hidden, key, context, prepared)

    def top_k(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        k: int,
        *,
        context: Context = None,
        prepared: Prepared = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Finds the k most probable words, in blocks of tokens: never [tokens, V].

        Args:
          params: the parameters.
          tables: `evaluation_tables` or `tables` of the lexicon.
          hidden: h, [..., D].
          k: words, at most V.
          context: of a background or expert, leaves [..., ?].
          prepared: what `prepared` gave, or None.

        Returns:
          (log-probabilities [..., k], nats, falling; words int32 [..., k]).
        """
        return self._top_k(params, tables, hidden, k, context, prepared)

    # ------------------------------------------------------------ what the zoo's heads write of it

    def _loss(self, params, tables, hidden, targets, key, context):
        log_prob = self.log_prob(params, tables, hidden, targets, context=context)
        return self.penalties(params, hidden) - log_prob

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        losses = self.loss(params, tables, hidden, targets, key=key, context=context)
        return weighted_sum(losses, token_weights)

    def _weighted_loss_and_penalty(
        self, params, tables, hidden, targets, token_weights, key, context
    ):
        given = {"key": key, "context": context}
        loss = self.weighted_loss(params, tables, hidden, targets, token_weights, **given)
        return loss, weighted_sum(self.penalties(params, hidden), token_weights)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        raise self._unwritten("log_prob_and_log_z")

    def _log_probs(self, params, tables, hidden, context, prepared):
        raise self._unwritten("log_probs")

    def _sample(self, params, tables, hidden, key, context, prepared):
        def of_block(log_probs, first):
            drawn = jax.random.categorical(jax.random.fold_in(key, first), log_probs)
            return drawn.astype(jnp.int32)  # with 64 bits, too

        return self._over_log_probs(of_block, params, tables, hidden, context, prepared)

    def _top_k(self, params, tables, hidden, k, context, prepared):
        def of_block(log_probs, first):
            softmax_words.check_k(k, log_probs.shape[-1])
            return jax.lax.top_k(log_probs, k)

        return self._over_log_probs(of_block, params, tables, hidden, context, prepared)

    def sizes(self, params: Params, tables: Tables) -> tuple[tuple[str, int, int], ...]:
        """The numbers in which params and tables of one lexicon agree; methods refuse others.

        Args:
          params: the parameters.
          tables: `tables` or `evaluation_tables`.

        Returns:
          (what is counted, the number in params, the number in tables) of each; none, unless a head
          has some.
        """
        return ()

    def prepared_shapes(self, tables: Tables, hidden_size: int) -> Any:
        """The shapes of what `prepared` gives, of a head that has `array_shapes` and prepares.

        Args:
          tables: `tables` or `evaluation_tables`.
          hidden_size: D.
        """
        return None

    def _unwritten(self, method: str) -> TypeError:
        """The error of a head that lacks one of the methods that it has to write itself."""
        return TypeError(f"{type(self).__name__} has no method {method}, which its use needs")

    def _over_log_probs(self, function, params, tables, hidden, context, prepared):
        """function(log p of every word [n, V], the first token's position) of blocks of tokens."""
        shape = hidden.shape[:-1]
        tokens = math.prod(shape)
        if prepared is None:
            prepared = self.prepared(params, tables)  # once, not in every block

        def log_probs(hidden, context):
            return self.log_probs(params, tables, hidden, context=context, prepared=prepared)

        def of_block(columns):
            h, c, positions = columns
            return function(log_probs(h, c), positions[0])

        words = jax.eval_shape(log_probs, hidden, context).shape[-1]
        flat = jax.tree.map(lambda x: x.reshape(tokens, *x.shape[len(shape) :]), (hidden, context))
        block = softmax_sum.token_block(tokens, self.scores_per_token(words))
        results = blocks.map_rows(of_block, (*flat, jnp.arange(tokens)), block)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), results)
